"""What the drivers of both generations of the Python SDK share: a plan (JSON) is the argument, a report (JSON) is written."""

import json


def read(value, *names):
    """The attribute that this generation has: the first spells attributes as the wire does, the second as Python does."""
    return next(getattr(value, name) for name in names if hasattr(value, name))


async def list_all(session):
    tools, cursor, pages = [], None, 0
    while True:
        page = await session.list_tools(cursor=cursor)
        tools += page.tools
        pages += 1
        cursor = read(page, "nextCursor", "next_cursor")
        if cursor is None:
            return tools, pages


async def call(session, tool, arguments):
    try:
        result = await session.call_tool(tool, arguments)
    except Exception as error:  # what the client refuses is the report
        return {"refused": f"{type(error).__name__}: {error}", "code": getattr(getattr(error, "error", None), "code", None)}
    return {
        "isError": bool(read(result, "isError", "is_error")),
        "structured": read(result, "structuredContent", "structured_content"),
        "text": result.content[0].text if result.content else None,
    }


async def use_tools(session, plan, protocol, server):
    tools, pages = await list_all(session)
    calls = [await call(session, one["tool"], one["arguments"]) for one in plan["calls"]]
    return {
        "protocol": protocol,
        "server": server and server.model_dump(mode="json", exclude_none=True),
        "pages": pages,
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
        "calls": calls,
    }


async def use_items(session, plan):
    prompts = (await session.list_prompts()).prompts
    resources = (await session.list_resources()).resources
    templates = read(await session.list_resource_templates(), "resourceTemplates", "resource_templates")
    prompt = await session.get_prompt(plan["prompt"], plan["arguments"])
    content = (await session.read_resource(resources[0].uri)).contents[0]
    return {
        "prompts": [prompt.name for prompt in prompts],
        "resources": [str(resource.uri) for resource in resources],
        "templates": [read(template, "uriTemplate", "uri_template") for template in templates],
        "message": prompt.messages[0].content.text,
        "read": {"uri": str(content.uri), "text": content.text},
    }


async def report(session, plan, protocol, server):
    """Does what the plan asks for: it names a prompt, or calls of tools."""
    print(json.dumps(await (use_items(session, plan) if "prompt" in plan else use_tools(session, plan, protocol, server))))
