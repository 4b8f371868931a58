"""Runs an agent of a framework to its end: its tools are those of a server, its model the stand-in of a vendor. Arguments:
the framework and a plan (JSON) with `url` (the server), `vendor` and `base` (where the vendor's interface is). The report
(JSON) is all of standard output; what a user would be warned of is on standard error.
"""

import asyncio
import json
import logging
import os
import sys

logging.basicConfig(level=logging.WARNING)
os.environ |= {
    "ANONYMIZED_TELEMETRY": "false",
    # Google ADK looks for a certificate of Google's cloud, whatever the server is.
    "GOOGLE_API_USE_CLIENT_CERTIFICATE": "false",
    "LANGSMITH_TRACING": "false",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
QUESTION = "Do what the model says."
TURNS_MAX = 20
# The time that a busy machine may take for the start of a session.
PATIENCE_S = 60


def langchain_model(plan):
    if plan["vendor"] == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model="claude-sonnet-4-5", base_url=plan["base"], api_key="none", max_retries=0)
    if plan["vendor"] == "gemini":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model="gemini-2.5-flash", base_url=plan["base"], api_key="none", max_retries=0)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-5-mini", base_url=plan["base"], api_key="none", max_retries=0)


async def langchain(plan):
    from langchain.agents import create_agent
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"weir": {"transport": "streamable_http", "url": plan["url"]}})
    agent = create_agent(langchain_model(plan), await client.get_tools())
    answer = await agent.ainvoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 2 * TURNS_MAX})
    return answer["messages"][-1].text


async def mcp_use(plan):
    from mcp_use import MCPAgent, MCPClient

    # It reports each step to its user and logs each error that a tool returns; this model causes some. It looks for a
    # sign-in unless told that there is none.
    log = logging.getLogger("mcp_use")
    log.setLevel(logging.WARNING)
    log.addFilter(lambda record: not record.getMessage().startswith(("Error parsing tool result:", "Structured error:")))
    client = MCPClient.from_dict({"mcpServers": {"weir": {"url": plan["url"], "auth": None}}})
    agent = MCPAgent(llm=langchain_model(plan), client=client, max_steps=TURNS_MAX)
    try:
        return await agent.run(QUESTION)
    finally:
        await agent.close()


def pydantic_ai_model(plan):
    if plan["vendor"] == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        # An answer that may be longer is asked for as a stream.
        settings = {"max_tokens": 4096}
        provider = AnthropicProvider(api_key="none", base_url=plan["base"])
        return AnthropicModel("claude-sonnet-4-5", provider=provider, settings=settings)
    if plan["vendor"] == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel("gemini-2.5-flash", provider=GoogleProvider(api_key="none", base_url=plan["base"]))
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(api_key="none", base_url=plan["base"]))


async def pydantic_ai(plan):
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset

    # A model may be wrong more often than the default of one time.
    toolset = MCPToolset(plan["url"], init_timeout=PATIENCE_S)
    agent = Agent(pydantic_ai_model(plan), toolsets=[toolset], retries=TURNS_MAX)
    return (await agent.run(QUESTION)).output


async def openai_agents(plan):
    from agents import Agent, OpenAIResponsesModel, Runner
    from agents.mcp import MCPServerStreamableHttp
    from openai import AsyncOpenAI

    model = OpenAIResponsesModel("gpt-5-mini", AsyncOpenAI(base_url=plan["base"], api_key="none", max_retries=0))
    params = {"url": plan["url"], "timeout": PATIENCE_S}
    async with MCPServerStreamableHttp(params=params, client_session_timeout_seconds=PATIENCE_S) as server:
        strict = {"convert_schemas_to_strict": plan["strict"]}
        agent = Agent(name="agent", model=model, mcp_servers=[server], mcp_config=strict)
        return (await Runner.run(agent, QUESTION, max_turns=TURNS_MAX)).final_output


async def google_adk(plan):
    from google.adk.agents import LlmAgent
    from google.adk.models import Gemini
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
    from google.genai import types

    os.environ |= {"GOOGLE_API_KEY": "none"}
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=plan["url"], timeout=PATIENCE_S))
    model = Gemini(model="gemini-2.5-flash", base_url=plan["base"])
    runner = InMemoryRunner(agent=LlmAgent(name="agent", model=model, tools=[toolset]), app_name="agents")
    session = await runner.session_service.create_session(app_name="agents", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    answer = ""
    async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=message):
        for part in event.content.parts if event.content else []:
            answer = part.text or answer
    await toolset.close()
    return answer


async def llama_index(plan):
    from google.genai.types import HttpOptions
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.google_genai import GoogleGenAI
    from llama_index.llms.openai import OpenAI
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = await McpToolSpec(BasicMCPClient(plan["url"])).to_tool_list_async()
    if plan["vendor"] == "gemini":
        options = HttpOptions(base_url=plan["base"])
        size = {"context_window": 100_000, "max_tokens": 1000}
        model = GoogleGenAI("gemini-2.5-flash", api_key="none", http_options=options, **size)
    else:
        model = OpenAI("gpt-4o", api_key="none", api_base=plan["base"], max_retries=0)
    agent = FunctionAgent(tools=tools, llm=model, streaming=False)
    return str(await agent.run(QUESTION, max_iterations=TURNS_MAX))


FRAMEWORKS = [langchain, mcp_use, pydantic_ai, openai_agents, google_adk, llama_index]


async def main(name, plan):
    framework = next(framework for framework in FRAMEWORKS if framework.__name__ == name)
    print(json.dumps({"answer": await framework(plan)}), flush=True)


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
