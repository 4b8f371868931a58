"""Answers one ticket at once, as a typed function."""

from dataclasses import dataclass
from typing import Annotated

from weir_plugin import Description, Pattern, plugin, tool


@dataclass
class Ticket:
    """A ticket of the support desk."""

    ticket_id: str
    title: str
    status: str
    priority: str
    assignee: str
    tags: list[str]
    description: str


@tool(read_only=True)
def lookup_ticket(
    ticket_id: Annotated[str, Pattern("^T-[0-9]{1,9}$"), Description("Ticket id, for example T-1001")],
) -> Ticket:
    """Look a ticket up by its id"""
    return Ticket(
        ticket_id=ticket_id,
        title="Printer on floor 3 is out of toner",
        status="open",
        priority="high",
        assignee="dana@example.com",
        tags=["hardware", "office"],
        description="x" * 304,
    )


About, Tools = plugin("lookup", "0.1.0", lookup_ticket)
