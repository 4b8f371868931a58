"""Drives a server through an agent framework, as its agents would. Arguments: the framework and a plan (JSON);
standard output: a report (JSON) with the tools and, of each call, the text that the framework shows to a model, and how the
framework's own code learns of an error: `raised` names an exception, `marked` what a result says of itself.

A plan has `url` or `command`, a `key` or none, and `calls`: what a model wrote as arguments.
"""

import asyncio
import json
import logging
import os
import sys

# Imported modules print a lot when they load; the report is the last line of standard output.
logging.disable(logging.CRITICAL)
os.environ |= {
    "ANONYMIZED_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "false",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OTEL_SDK_DISABLED": "true",
}


# Some frameworks give a server five seconds, which a busy machine may need for its start.
PATIENCE_S = 60


class Plan:
    def __init__(self, plan):
        self.url = plan.get("url")
        self.command = plan.get("command")
        self.calls = plan["calls"]
        self.headers = {"Authorization": f"Bearer {plan['key']}"} if plan.get("key") else {}
        self.env = {**os.environ, "WEIR_KEY": plan.get("key") or ""}

    def stdio(self, parameters, **more):
        """The parameters of a stdio server, in a class of the framework."""
        return parameters(command=self.command[0], args=self.command[1:], env=self.env, **more)


def text(result):
    """The text of what a framework hands to a model: a text, content blocks, or one of its own objects."""
    if isinstance(result, str):
        return result
    if isinstance(result, (list, tuple)):
        return "\n".join(text(part) for part in result)
    if isinstance(result, dict):
        known = [key for key in ("text", "content") if result.get(key)]
        return text(result[known[0]]) if known else json.dumps(result, default=str)
    for name in ("text", "content", "result"):
        value = getattr(result, name, None)
        if value is not None:
            return text(value)
    return str(result)


def mark(result):
    """What an object of the framework reports about an error, besides its text."""
    if (raw := getattr(result, "raw_output", None)) is not None:
        return mark(raw)
    fields = result if isinstance(result, dict) else getattr(result, "__dict__", {})
    for name, value in [("status", "error"), ("is_error", True), ("isError", True)]:
        if fields.get(name) == value:
            return f"{name}={value}"
    return f"error={fields['error']}" if isinstance(fields.get("error"), str) else None


async def report(plan, names, call):
    """`call`: a coroutine function of a tool's name and its arguments."""
    answers = []
    for one in plan.calls:
        try:
            answer = await call(one["tool"], one["arguments"])
            answers.append({"text": text(answer), "marked": mark(answer)})
        except Exception as error:  # the message of an exception is what a model is shown then
            answers.append({"text": str(error), "raised": type(error).__name__})
    return {"tools": list(names), "calls": answers}


async def langchain(plan):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    if plan.url:
        server = {"transport": "streamable_http", "url": plan.url, "headers": plan.headers}
    else:
        server = {"transport": "stdio", "command": plan.command[0], "args": plan.command[1:], "env": plan.env}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"weir": server}).get_tools()}

    async def call(tool, arguments):
        message = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
        return await tools[tool].ainvoke(message)

    return await report(plan, tools, call)


async def mcp_use(plan):
    from mcp_use import MCPClient
    from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter

    if plan.url:
        server = {"url": plan.url, "headers": plan.headers}
    else:
        server = {"command": plan.command[0], "args": plan.command[1:], "env": plan.env}
    client = MCPClient.from_dict({"mcpServers": {"weir": server}})
    adapter = LangChainAdapter()
    await adapter.create_all(client)
    tools = {tool.name: tool for tool in adapter.tools}
    try:
        return await report(plan, tools, lambda tool, arguments: tools[tool].ainvoke(arguments))
    finally:
        await client.close_all_sessions()


async def autogen(plan):
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import (
        StdioServerParams,
        StreamableHttpServerParams,
        create_mcp_server_session,
        mcp_server_tools,
    )

    if plan.url:
        server = StreamableHttpServerParams(url=plan.url, headers=plan.headers)
    else:
        server = plan.stdio(StdioServerParams, read_timeout_seconds=PATIENCE_S)
    # Without its own session, AutoGen tells a model only that there was an error.
    async with create_mcp_server_session(server) as session:
        await session.initialize()
        tools = {tool.name: tool for tool in await mcp_server_tools(server, session)}
        return await report(plan, tools, lambda tool, arguments: tools[tool].run_json(arguments, CancellationToken()))


async def openai_agents(plan):
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
    from agents.tool_context import ToolContext

    if plan.url:
        params = {"url": plan.url, "headers": plan.headers, "timeout": PATIENCE_S}
        server = MCPServerStreamableHttp(params=params, client_session_timeout_seconds=PATIENCE_S)
    else:
        params = {"command": plan.command[0], "args": plan.command[1:], "env": plan.env}
        server = MCPServerStdio(params=params, client_session_timeout_seconds=PATIENCE_S)
    async with server:
        listed = await MCPUtil.get_function_tools(server, True, None, None)
        tools = {tool.name: tool for tool in listed}

        async def call(tool, arguments):
            words = json.dumps(arguments)
            context = ToolContext(context=None, tool_name=tool, tool_call_id="1", tool_arguments=words)
            return await tools[tool].on_invoke_tool(context, words)

        return await report(plan, tools, call)


async def agno(plan):
    from agno.tools.mcp import MCPTools
    from agno.tools.mcp.params import StreamableHTTPClientParams
    from mcp import StdioServerParameters

    if plan.url:
        parameters = StreamableHTTPClientParams(url=plan.url, headers=plan.headers)
        tools = MCPTools(server_params=parameters, transport="streamable-http", timeout_seconds=PATIENCE_S)
    else:
        stdio = plan.stdio(StdioServerParameters)
        tools = MCPTools(server_params=stdio, transport="stdio", timeout_seconds=PATIENCE_S)
    async with tools:
        return await report(plan, tools.functions, lambda tool, arguments: tools.functions[tool].entrypoint(**arguments))


async def smolagents(plan):
    from mcp import StdioServerParameters
    from smolagents import MCPClient

    if plan.url:
        server = {"url": plan.url, "transport": "streamable-http", "headers": plan.headers}
    else:
        server = plan.stdio(StdioServerParameters)
    with MCPClient(server, structured_output=False) as listed:
        tools = {tool.name: tool for tool in listed}

        async def call(tool, arguments):
            return tools[tool](**arguments)

        return await report(plan, tools, call)


async def pydantic_ai(plan):
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
    from pydantic_ai.mcp import MCPToolset

    if plan.url:
        transport = StreamableHttpTransport(plan.url, headers=plan.headers)
    else:
        transport = plan.stdio(StdioTransport)
    async with MCPToolset(transport, init_timeout=PATIENCE_S) as tools:
        names = [tool.name for tool in await tools.list_tools()]
        return await report(plan, names, tools.direct_call_tool)


async def llama_index(plan):
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    if plan.url:
        client = BasicMCPClient(plan.url, headers=plan.headers)
    else:
        client = BasicMCPClient(plan.command[0], args=plan.command[1:], env=plan.env)
    listed = await McpToolSpec(client, include_resources=True).to_tool_list_async()
    tools = {tool.metadata.name: tool for tool in listed}
    return await report(plan, tools, lambda tool, arguments: tools[tool].acall(**arguments))


async def crewai(plan):
    from crewai_tools import MCPServerAdapter
    from mcp import StdioServerParameters

    if plan.url:
        server = {"url": plan.url, "transport": "streamable-http", "headers": plan.headers}
    else:
        server = plan.stdio(StdioServerParameters)
    with MCPServerAdapter(server, connect_timeout=PATIENCE_S) as listed:
        tools = {tool.name: tool for tool in listed}

        async def call(tool, arguments):
            return tools[tool].run(**arguments)

        return await report(plan, tools, call)


async def semantic_kernel(plan):
    from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin
    from semantic_kernel.kernel import Kernel

    if plan.url:
        server = MCPStreamableHttpPlugin(name="weir", url=plan.url, headers=plan.headers)
    else:
        server = MCPStdioPlugin(name="weir", command=plan.command[0], args=plan.command[1:], env=plan.env)
    # It waits forever for a server that requires a key, whatever its request_timeout is.
    opening = asyncio.create_task(server.connect())
    if not (await asyncio.wait({opening}, timeout=30))[0]:
        return {"refused": "it waits without end"}
    await opening
    plugin = Kernel().add_plugin(server, "weir")
    names = [name.replace("-", "_") for name in plugin.functions]
    done = await report(plan, names, lambda tool, arguments: server.call_tool(tool, **arguments))
    await server.close()
    return done


async def google_adk(plan):
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
    from mcp import StdioServerParameters

    if plan.url:
        parameters = StreamableHTTPConnectionParams(url=plan.url, headers=plan.headers, timeout=PATIENCE_S)
    else:
        parameters = StdioConnectionParams(server_params=plan.stdio(StdioServerParameters), timeout=PATIENCE_S)
    toolset = McpToolset(connection_params=parameters)
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    try:
        return await report(
            plan, tools, lambda tool, arguments: tools[tool]._run_async_impl(args=arguments, tool_context=None, credential=None)
        )
    finally:
        await toolset.close()


async def haystack(plan):
    from haystack_integrations.tools.mcp import MCPToolset, StdioServerInfo, StreamableHttpServerInfo

    if plan.url:
        server = StreamableHttpServerInfo(url=plan.url, headers=plan.headers)
    else:
        server = plan.stdio(StdioServerInfo)
    toolset = MCPToolset(server_info=server, connection_timeout=PATIENCE_S, invocation_timeout=PATIENCE_S)
    toolset.warm_up()
    tools = {tool.name: tool for tool in toolset}
    try:
        return await report(plan, tools, lambda tool, arguments: asyncio.to_thread(tools[tool].invoke, **arguments))
    finally:
        toolset.close()


async def strands(plan):
    from mcp import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from strands.tools.mcp import MCPClient
    import httpx2

    def connect():
        if plan.url:
            return streamable_http_client(plan.url, http_client=httpx2.AsyncClient(headers=plan.headers))
        return stdio_client(plan.stdio(StdioServerParameters))

    def drive():
        with MCPClient(connect) as client:
            names = [tool.tool_name for tool in client.list_tools_sync()]

            async def call(tool, arguments):
                return client.call_tool_sync(tool_use_id="1", name=tool, arguments=arguments)

            return asyncio.run(report(plan, names, call))

    return await asyncio.to_thread(drive)


async def dspy(plan):
    import dspy
    from mcp import ClientSession, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    import httpx2

    if plan.url:
        transport = streamable_http_client(plan.url, http_client=httpx2.AsyncClient(headers=plan.headers))
    else:
        transport = stdio_client(plan.stdio(StdioServerParameters))
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = {tool.name: dspy.Tool.from_mcp_tool(session, tool) for tool in (await session.list_tools()).tools}
        return await report(plan, tools, lambda tool, arguments: tools[tool].acall(**arguments))


async def google_genai(plan):
    """The tools of a session as they are written for Gemini, where one that cannot be fails the whole request."""
    from google.genai._mcp_utils import mcp_to_gemini_tools
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client
    import httpx2

    async with (
        streamable_http_client(plan.url, http_client=httpx2.AsyncClient(headers=plan.headers)) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        written = mcp_to_gemini_tools((await session.list_tools()).tools)
        names = [declaration.name for tool in written for declaration in tool.function_declarations]
        return await report(plan, names, session.call_tool)


FRAMEWORKS = [
    langchain, mcp_use, autogen, openai_agents, agno, smolagents, pydantic_ai, llama_index, crewai,
    semantic_kernel, google_adk, haystack, strands, dspy, google_genai,
]  # fmt: skip


async def main(name, plan):
    framework = next(framework for framework in FRAMEWORKS if framework.__name__ == name)
    try:
        done = await framework(Plan(plan))
    except BaseException as error:
        causes = error
        while isinstance(causes, BaseExceptionGroup):
            causes = causes.exceptions[0]
        done = {"refused": f"{type(causes).__name__}: {causes}"}
    print(json.dumps(done), flush=True)
    # Threads of a framework must not keep the process.
    os._exit(0)


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
