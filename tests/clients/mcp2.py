"""Drives a server with the official Python client 2.x. Argument: a plan (JSON); standard output: a report (JSON)."""

import asyncio
import json
import sys

import driver
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


def target(plan):
    if "url" in plan:
        return plan["url"]
    return stdio_client(StdioServerParameters(command=plan["command"][0], args=plan["command"][1:]))


async def main(plan):
    async with Client(target(plan), mode=MODES[plan["mode"]]) as client:
        await driver.report(client, plan, client.protocol_version, client.server_info)


asyncio.run(main(json.loads(sys.argv[1])))
