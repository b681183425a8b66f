"""What a request says, in one form for all APIs: the tools on offer, what was said, which turn is next."""

from __future__ import annotations

import hashlib
import json
import re
from collections import namedtuple

# kind: "user", "text", "call" or "result"; call_id: of a call, where the API has ids.
Said = namedtuple("Said", "kind call_id", defaults=(None,))
# One reply of the model, ready to be put into an API's words. calls: (id, name, arguments); the
# arguments are a dict, or a text for a tool that takes one; the name may be (namespace, name).
Reply = namedtuple("Reply", "number model reasoning text phase items calls usage failure")

USAGE = {"input": 100, "cached": 40, "output": 20, "reasoning": 5}
FREE_FORM = "*"  # stands for the parameters of a tool that takes any text
_CALL_ID = re.compile(r"call_turn(\d+)_\d+")
# In which words the CLIs tell their model the working directory.
_DIRECTORY = [
    re.compile(pattern)
    for pattern in (
        r"<cwd>(/[^<\\]+)</cwd>",
        r"[Ww]orking directory: (/[^\n\\<]+)",
        r"working in the directory: (/[^\n\\<]+)",
        r"[Ww]orkspace [Dd]irectories:\*{0,2}\s*(?:\\n|\n)?\s*-? *(/[^\n\\<]+)",
        r"current working directory[^\n/]*?: *(/[^\n\\<]+)",
    )
]
_SESSION_HEADERS = ("session-id", "x-session-id", "x-claude-code-session-id")


def call_id(turn: int, index: int) -> str:
    """The id of a call, from which its turn can be read again."""
    return f"call_turn{turn}_{index}"


def next_turn(said: list[Said]) -> int:
    """The number of the turn that follows this conversation.

    A call of turn N makes it N + 1; where ids got lost, each run of calls is a turn. A text
    that the user answered was a whole turn, too.
    """
    turn, answered, among_calls = 0, False, False
    for kind, its_id in said:
        if kind == "call":
            match = _CALL_ID.search(its_id or "")
            if match:
                turn = int(match.group(1)) + 1
            elif not among_calls:
                turn += 1
            answered = False
        elif kind == "text":
            answered = True
        elif kind == "user" and answered:
            turn, answered = turn + 1, False
        among_calls = kind == "call"
    return turn


def working_directory(body: dict) -> str | None:
    """The directory that the CLI works in, as it tells its model."""
    text = json.dumps(body, ensure_ascii=False)
    for pattern in _DIRECTORY:
        match = pattern.search(text)
        if match:
            return match.group(1).strip()
    return None


def session(headers: dict, body: dict) -> str:
    """Something that is the same for all requests of one conversation."""
    named = [headers[name] for name in _SESSION_HEADERS if headers.get(name)]
    return named[0] if named else hashlib.sha256(json.dumps(body)[:4000].encode()).hexdigest()


def pieces(text: str, count: int = 4) -> list[str]:
    """The text cut up, so that a client has to put it together."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


def parameters(tool: dict) -> list[str]:
    """Names of the parameters of one offered tool, whatever the API calls its schema."""
    for key in ("parameters", "input_schema", "parametersJsonSchema"):
        if isinstance(tool.get(key), dict):
            return list(tool[key].get("properties", {}))
    return []
