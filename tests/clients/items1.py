"""Reads prompts and resources with the official Python SDK 1.x. Argument: a plan (JSON); standard output: a report (JSON)."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main():
    plan = json.loads(sys.argv[1])
    async with streamablehttp_client(plan["url"]) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        prompts = (await session.list_prompts()).prompts
        resources = (await session.list_resources()).resources
        templates = (await session.list_resource_templates()).resourceTemplates
        prompt = await session.get_prompt(plan["prompt"], plan["arguments"])
        read = (await session.read_resource(resources[0].uri)).contents[0]
        print(json.dumps({
            "prompts": [prompt.name for prompt in prompts],
            "resources": [str(resource.uri) for resource in resources],
            "templates": [template.uriTemplate for template in templates],
            "message": prompt.messages[0].content.text,
            "read": {"uri": str(read.uri), "text": read.text},
        }))


asyncio.run(main())
