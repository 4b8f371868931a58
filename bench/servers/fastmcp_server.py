"""FastMCP.  fastmcp_server.py PORT"""
import sys

import uvicorn
from fastmcp import FastMCP
from ticket import ticket

server = FastMCP("peer")


@server.tool(description="Look a ticket up by its id", output_schema=None)
async def lookup_ticket(ticket_id: str) -> str:
    return ticket(ticket_id)


app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
