"""What the servers of both generations of the Python SDK share: the results of their tools, and the tools without a question."""

import anyio
from pydantic import BaseModel

cancelled_calls = 0


class Text(BaseModel):
    text: str


class Steps(BaseModel):
    steps: int


class Calls(BaseModel):
    calls: int


class Name(BaseModel):
    name: str


class Asked(BaseModel):
    action: str
    name: str | None = None


class Uris(BaseModel):
    uris: list[str]


def asked(outcome):
    return Asked(action=outcome.action, name=outcome.data.name if outcome.action == "accept" else None)


def add_plain_tools(reads, Context):
    """Adds the tools that ask nothing. `reads` registers a tool that only reads; `Context` is the SDK's own."""

    @reads
    async def echo(text: str) -> Text:
        """The tool echo."""
        return Text(text=text)

    @reads
    async def slow(wait_ms: int, context: Context) -> Steps:
        """The tool slow."""
        global cancelled_calls
        try:
            for step in (1, 2, 3):
                await context.report_progress(step, 3)
            await anyio.sleep(wait_ms / 1000)
        except anyio.get_cancelled_exc_class():
            cancelled_calls += 1
            raise
        return Steps(steps=3)

    @reads
    async def cancelled() -> Calls:
        """The tool cancelled."""
        return Calls(calls=cancelled_calls)
