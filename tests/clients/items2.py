"""Reads prompts and resources with the official Python client 2.x. Argument: a plan (JSON); standard output: a report (JSON)."""

import asyncio
import json
import sys

from mcp import Client


async def main():
    plan = json.loads(sys.argv[1])
    async with Client(plan["url"]) as client:
        prompts = (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        prompt = await client.get_prompt(plan["prompt"], plan["arguments"])
        read = (await client.read_resource(resources[0].uri)).contents[0]
        print(json.dumps({
            "prompts": [prompt.name for prompt in prompts],
            "resources": [str(resource.uri) for resource in resources],
            "templates": [template.uri_template for template in templates],
            "message": prompt.messages[0].content.text,
            "read": {"uri": str(read.uri), "text": read.text},
        }))


asyncio.run(main())
