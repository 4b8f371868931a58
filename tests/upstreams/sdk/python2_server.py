"""The server of the matrix, with the Python SDK 2.x: `stdio`, `http PORT` (each in both eras) or `sse PORT`."""

import sys
from typing import Annotated

import anyio
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

way, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = MCPServer("python2", log_level="ERROR")
reads = server.tool(annotations=ToolAnnotations(read_only_hint=True))
cancelled_calls = 0


class Text(BaseModel):
    text: str


class Steps(BaseModel):
    steps: int


class Calls(BaseModel):
    calls: int


class Name(BaseModel):
    name: str


class Asked(BaseModel):
    action: str
    name: str | None = None


class Uris(BaseModel):
    uris: list[str]


def name() -> Elicit[Name]:
    return Elicit("Your name?", Name)


def said() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="Say hello."))], max_tokens=10)


def folders() -> ListRoots:
    return ListRoots()


@reads
async def echo(text: str) -> Text:
    """The tool echo."""
    return Text(text=text)


@reads
async def slow(wait_ms: int, context: Context) -> Steps:
    """The tool slow."""
    global cancelled_calls
    try:
        for step in (1, 2, 3):
            await context.report_progress(step, 3)
        await anyio.sleep(wait_ms / 1000)
    except anyio.get_cancelled_exc_class():
        cancelled_calls += 1
        raise
    return Steps(steps=3)


@reads
async def cancelled() -> Calls:
    """The tool cancelled."""
    return Calls(calls=cancelled_calls)


@reads
async def ask(outcome: Annotated[ElicitationResult[Name], Resolve(name)]) -> Asked:
    """The tool ask."""
    return Asked(action=outcome.action, name=outcome.data.name if outcome.action == "accept" else None)


@reads
async def sample(result: Annotated[CreateMessageResult, Resolve(said)]) -> Text:
    """The tool sample."""
    return Text(text=result.content.text)


@reads
async def roots(result: Annotated[ListRootsResult, Resolve(folders)]) -> Uris:
    """The tool roots."""
    return Uris(uris=[str(root.uri) for root in result.roots])


if way == "stdio":
    server.run("stdio")
else:
    server.run({"http": "streamable-http", "sse": "sse"}[way], port=port)
