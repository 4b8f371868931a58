"""FastMCP.  fastmcp_server.py PORT json|session TOOLS"""
import sys

import uvicorn
from fastmcp import FastMCP
from ticket import ticket

port, plain, tools = int(sys.argv[1]), sys.argv[2] == "json", int(sys.argv[3])
server = FastMCP("peer")


@server.tool(description="Look a ticket up by its id", output_schema=None)
async def lookup_ticket(ticket_id: str) -> str:
    return ticket(ticket_id)


for number in range(1, tools):
    async def other(ticket_id: str) -> str:
        return "x"
    server.tool(other, name=f"lookup_ticket_{number:05d}", description="Look a ticket up by its id", output_schema=None)

app = server.http_app(path="/mcp", json_response=plain, stateless_http=plain)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
