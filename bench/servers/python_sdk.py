"""The official Python SDK.  python_sdk.py PORT json|session TOOLS"""
import sys

import uvicorn
from mcp.server import MCPServer
from ticket import ticket

port, plain, tools = int(sys.argv[1]), sys.argv[2] == "json", int(sys.argv[3])
server = MCPServer("peer", log_level="WARNING")


@server.tool(description="Look a ticket up by its id", structured_output=False)
async def lookup_ticket(ticket_id: str) -> str:
    return ticket(ticket_id)


for number in range(1, tools):
    async def other(ticket_id: str) -> str:
        return "x"
    name = f"lookup_ticket_{number:05d}"
    server.tool(name=name, description="Look a ticket up by its id", structured_output=False)(other)

app = server.streamable_http_app(json_response=plain, stateless_http=plain)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
