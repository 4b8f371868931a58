"""Calls a tool that asks its caller, with the official Python client 2.x. Argument: a plan (JSON); standard output: a report (JSON).

The client answers through its own elicitation callback; then once more by hand, with a state that was altered.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult, InputRequiredResult

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


def target(plan):
    if "url" in plan:
        return plan["url"]
    return stdio_client(StdioServerParameters(command=plan["command"][0], args=plan["command"][1:]))


async def outcome(called):
    try:
        result = await called
    except Exception as error:  # what the server refuses is the report
        return {"refused": f"{type(error).__name__}: {error}", "code": getattr(getattr(error, "error", None), "code", None)}
    if isinstance(result, InputRequiredResult):
        return {"asks": result}
    return {"isError": bool(result.is_error), "structured": result.structured_content}


async def main(plan):
    tool, arguments = plan["tool"], plan["arguments"]
    answers = [ElicitResult(**answer) for answer in plan["answers"]]
    asked, answered, manual, answer = [], [], {}, None

    async def elicit(_context, params):
        asked.append({"message": params.message, "schema": params.requested_schema})
        return answer

    async with Client(target(plan), mode=MODES[plan["mode"]], elicitation_callback=elicit) as client:
        await client.list_tools()
        protocol = client.protocol_version
        for answer in answers:
            answered.append(await outcome(client.call_tool(tool, arguments)))
        # By hand, and not through the callback: what the protocol would let a client do with the state.
        if plan["mode"] != "legacy":

            async def by_hand(given=arguments, **more):
                return await outcome(client.session.call_tool(tool, given, allow_input_required=True, **more))

            asks = (await by_hand())["asks"]
            responses = {key: answers[0] for key in asks.input_requests}
            state = asks.request_state
            middle = len(state) // 2
            altered = state[:middle] + ("B" if state[middle] == "A" else "A") + state[middle + 1 :]
            manual["altered"] = await by_hand(input_responses=responses, request_state=altered)
            manual["others"] = await by_hand(plan["other"], input_responses=responses, request_state=state)
            manual["kept"] = await by_hand(input_responses=responses, request_state=state)
    async with Client(target(plan), mode=MODES[plan["mode"]]) as mute:
        unasked = await outcome(mute.call_tool(tool, arguments))
    print(json.dumps({"protocol": protocol, "asked": asked, "answered": answered, "manual": manual, "unasked": unasked}))


asyncio.run(main(json.loads(sys.argv[1])))
