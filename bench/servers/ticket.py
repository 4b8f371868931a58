"""The ticket that the Python servers look up."""
import json


def ticket(ticket_id: str) -> str:
    return json.dumps(
        {"ticket_id": ticket_id, "title": "Printer on floor 3 is out of toner", "status": "open", "priority": "high",
         "assignee": "dana@example.com", "tags": ["hardware", "office"], "description": "x" * 304},
        separators=(",", ":"))
