"""The server of the matrix, with the Python SDK 2.x: `stdio`, `http PORT` (each in both eras) or `sse PORT`."""

import sys
from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from python_tools import Asked, Name, Text, Uris, add_plain_tools, asked

way, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = MCPServer("python2", log_level="ERROR")
reads = server.tool(annotations=ToolAnnotations(read_only_hint=True))
add_plain_tools(reads, Context)


def name() -> Elicit[Name]:
    return Elicit("Your name?", Name)


def ask_for_sample() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="Say hello."))], max_tokens=10)


def folders() -> ListRoots:
    return ListRoots()


@reads
async def ask(outcome: Annotated[ElicitationResult[Name], Resolve(name)]) -> Asked:
    """The tool ask."""
    return asked(outcome)


@reads
async def sample(result: Annotated[CreateMessageResult, Resolve(ask_for_sample)]) -> Text:
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
