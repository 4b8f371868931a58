"""An MCP server over Streamable HTTP, of the session era. It needs nothing but Python.

Its tools: `headers` answers the headers that the call came with, `count` how many calls were run, and `forget` ends every
session after it was answered.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

state = {"sessions": set(), "opened": 0, "runs": 0, "listed_with": {}}
TOOLS = [{"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}}
         for name in ("headers", "count", "forget")]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", session=None):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if session:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, number = message.get("method"), message.get("id")
        if self.headers.get("authorization") != "Bearer upstream-key":
            return self.reply(401)
        if method == "initialize":
            state["opened"] += 1
            session = f"s{state['opened']}"
            state["sessions"].add(session)
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "over-http", "version": "1"}}
            return self.reply(200, self.result(number, result), session)
        if method == "server/discover":
            error = {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}}
            return self.reply(404, json.dumps(error).encode())
        if self.headers.get("mcp-session-id") not in state["sessions"]:
            return self.reply(404)
        if number is None:
            return self.reply(202)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if method == "tools/list":
            state["listed_with"] = headers
            return self.reply(200, self.result(number, {"tools": TOOLS}))
        if method == "tools/call":
            return self.reply(200, self.result(number, self.call(message["params"]["name"], headers)))
        return self.reply(200, self.result(number, {}))

    def call(self, name, headers):
        state["runs"] += 1
        counts = {"runs": state["runs"], "opened": state["opened"]}
        if name == "headers":
            counts = {"call": headers, "list": state["listed_with"]}
        if name == "forget":
            state["sessions"].clear()
        return {"content": [{"type": "text", "text": json.dumps(counts)}]}

    @staticmethod
    def result(number, result):
        return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
