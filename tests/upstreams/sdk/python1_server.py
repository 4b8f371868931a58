"""The server of the matrix, with the Python SDK 1.x: `stdio`, `http PORT` or `sse PORT`."""

import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent, ToolAnnotations
from python_tools import Asked, Name, Text, Uris, add_plain_tools, asked

way, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = FastMCP("python1", port=port, log_level="ERROR")
reads = server.tool(annotations=ToolAnnotations(readOnlyHint=True))
add_plain_tools(reads, Context)


@reads
async def ask(context: Context) -> Asked:
    """The tool ask."""
    outcome = await context.elicit("Your name?", Name)
    return asked(outcome)


@reads
async def sample(context: Context) -> Text:
    """The tool sample."""
    hello = SamplingMessage(role="user", content=TextContent(type="text", text="Say hello."))
    result = await context.session.create_message([hello], max_tokens=10, related_request_id=context.request_id)
    return Text(text=result.content.text)


@reads
async def roots(context: Context) -> Uris:
    """The tool roots."""
    result = await context.session.list_roots()
    return Uris(uris=[str(root.uri) for root in result.roots])


server.run({"stdio": "stdio", "http": "streamable-http", "sse": "sse"}[way])
