"""The server of the matrix, with the Python SDK 1.x: `stdio`, `http PORT` or `sse PORT`."""

import sys

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

way, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = FastMCP("python1", port=port, log_level="ERROR")
reads = server.tool(annotations=ToolAnnotations(readOnlyHint=True))
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
async def ask(context: Context) -> Asked:
    """The tool ask."""
    outcome = await context.elicit("Your name?", Name)
    return Asked(action=outcome.action, name=outcome.data.name if outcome.action == "accept" else None)


@reads
async def sample(context: Context) -> Text:
    """The tool sample."""
    said = SamplingMessage(role="user", content=TextContent(type="text", text="Say hello."))
    result = await context.session.create_message([said], max_tokens=10, related_request_id=context.request_id)
    return Text(text=result.content.text)


@reads
async def roots(context: Context) -> Uris:
    """The tool roots."""
    result = await context.session.list_roots()
    return Uris(uris=[str(root.uri) for root in result.roots])


server.run({"stdio": "stdio", "http": "streamable-http", "sse": "sse"}[way])
