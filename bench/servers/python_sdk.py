"""The official Python SDK.  python_sdk.py PORT"""
import sys

import uvicorn
from mcp.server import MCPServer
from ticket import ticket

server = MCPServer("peer", log_level="WARNING")


@server.tool(description="Look a ticket up by its id", structured_output=False)
async def lookup_ticket(ticket_id: str) -> str:
    return ticket(ticket_id)


app = server.streamable_http_app(json_response=True, stateless_http=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
