"""FastMCP's proxy.  fastmcp_proxy.py PORT URL"""
import sys

import uvicorn
from fastmcp.server import create_proxy

server = create_proxy(sys.argv[2], name="peer")
app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
