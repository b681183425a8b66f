"""What every result of an agent's run has to be, whatever the agent was and did."""

from __future__ import annotations

import json

from termsprawlctl.agents.server.schemas import RESULT
from termsprawlctl.base import jsontext

ENDED = ("completed", "incomplete", "failed", "timed_out", "cancelled")
_TYPES = {"string": str, "integer": int, "object": dict, "array": list}


def check_result(structure: dict) -> None:
    """That it is of the schema and can be sent."""
    sent = json.loads(jsontext.encode(jsontext.compact(structure)))
    for name, value in sent.items():
        wanted = RESULT["properties"][name]["type"]
        assert isinstance(value, _TYPES[wanted]), (name, value)
        assert not isinstance(value, bool), name
    assert all(isinstance(step["kind"], str) for step in sent.get("activity", []))


def check_ended(text: str, structure: dict, limit_bytes: int) -> None:
    """The same, for a run that has ended; and that both are within the limit."""
    assert text
    check_result(structure)
    assert structure["status"] in ENDED
    assert ("error" in structure) == (structure["status"] != "completed")
    # A tenth more: the lines that say what was left out are not counted, nor the names around it all.
    assert len(jsontext.encode(text)) <= limit_bytes * 1.1 + 400
    assert len(jsontext.encode(jsontext.compact(structure))) <= limit_bytes * 1.1 + 1500
