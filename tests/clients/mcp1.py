"""Drives a server with the official Python SDK 1.x. Argument: a plan (JSON); standard output: a report (JSON)."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


@asynccontextmanager
async def streams(plan):
    if "url" in plan:
        async with streamablehttp_client(plan["url"]) as (read, write, _):
            yield read, write
    else:
        parameters = StdioServerParameters(command=plan["command"][0], args=plan["command"][1:])
        async with stdio_client(parameters) as (read, write):
            yield read, write


async def list_all(session):
    tools, cursor, pages = [], None, 0
    while True:
        page = await session.list_tools(cursor=cursor)
        tools += page.tools
        pages += 1
        cursor = page.nextCursor
        if cursor is None:
            return tools, pages


async def call(session, tool, arguments):
    try:
        result = await session.call_tool(tool, arguments)
    except Exception as error:  # what the client refuses is the report
        return {"refused": f"{type(error).__name__}: {error}", "code": getattr(getattr(error, "error", None), "code", None)}
    return {
        "isError": bool(result.isError),
        "structured": result.structuredContent,
        "text": result.content[0].text if result.content else None,
    }


async def main(plan):
    async with streams(plan) as (read, write), ClientSession(read, write) as session:
        opened = await session.initialize()
        tools, pages = await list_all(session)
        calls = [await call(session, one["tool"], one["arguments"]) for one in plan["calls"]]
        report = {
            "protocol": opened.protocolVersion,
            "server": opened.serverInfo.model_dump(mode="json", exclude_none=True),
            "pages": pages,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
            "calls": calls,
        }
        print(json.dumps(report))


asyncio.run(main(json.loads(sys.argv[1])))
