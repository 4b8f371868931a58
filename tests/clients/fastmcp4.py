"""Drives a server with the fastmcp 4.x client. Argument: a plan (JSON); standard output: a report (JSON).

This client builds a type from the advertised output schema: `data` of each call carries the record's own fields.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


def target(plan):
    if "url" in plan:
        return plan["url"]
    return StdioTransport(command=plan["command"][0], args=plan["command"][1:])


def fields(data):
    """The attributes of the typed result; None where the client could not build a type."""
    if data is None or isinstance(data, dict):
        return None
    return sorted(name for name in vars(data) if not name.startswith("_"))


async def call(client, tool, arguments):
    try:
        result = await client.call_tool(tool, arguments, raise_on_error=False)
    except Exception as error:  # what the client refuses is the report
        return {"refused": f"{type(error).__name__}: {error}"}
    return {
        "isError": bool(result.is_error),
        "structured": result.structured_content,
        "text": result.content[0].text if result.content else None,
        "data": fields(result.data),
    }


async def main(plan):
    async with Client(target(plan)) as client:
        tools = await client.list_tools()
        calls = [await call(client, one["tool"], one["arguments"]) for one in plan["calls"]]
        report = {
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
            "calls": calls,
        }
        print(json.dumps(report))


asyncio.run(main(json.loads(sys.argv[1])))
