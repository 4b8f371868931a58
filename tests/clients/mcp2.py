"""Drives a server with the official Python client 2.x. Argument: a plan (JSON); standard output: a report (JSON)."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


def target(plan):
    if "url" in plan:
        return plan["url"]
    return stdio_client(StdioServerParameters(command=plan["command"][0], args=plan["command"][1:]))


async def list_all(client):
    tools, cursor, pages = [], None, 0
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            return tools, pages


async def call(client, tool, arguments):
    try:
        result = await client.call_tool(tool, arguments)
    except Exception as error:  # what the client refuses is the report
        return {"refused": f"{type(error).__name__}: {error}", "code": getattr(getattr(error, "error", None), "code", None)}
    return {
        "isError": bool(result.is_error),
        "structured": result.structured_content,
        "text": result.content[0].text if result.content else None,
    }


async def main(plan):
    async with Client(target(plan), mode=MODES[plan["mode"]]) as client:
        tools, pages = await list_all(client)
        calls = [await call(client, one["tool"], one["arguments"]) for one in plan["calls"]]
        server = client.server_info
        report = {
            "protocol": client.protocol_version,
            "server": server and server.model_dump(mode="json", exclude_none=True),
            "pages": pages,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
            "calls": calls,
        }
        print(json.dumps(report))


asyncio.run(main(json.loads(sys.argv[1])))
