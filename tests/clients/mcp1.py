"""Drives a server with the official Python SDK 1.x. Argument: a plan (JSON); standard output: a report (JSON)."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import driver
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


async def main(plan):
    async with streams(plan) as (read, write), ClientSession(read, write) as session:
        opened = await session.initialize()
        await driver.report(session, plan, opened.protocolVersion, opened.serverInfo)


asyncio.run(main(json.loads(sys.argv[1])))
