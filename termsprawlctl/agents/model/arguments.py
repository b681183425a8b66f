"""What a call of a tool may say, checked field by field. Pure."""

from __future__ import annotations

import re

from ...base.jsontext import encode
from .settings import EFFORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .types import Json


SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
RUN_ID = re.compile(r"run-[0-9a-f]{12}")
MAX_MODEL = 300  # characters; the CLIs take it as an argument
MAX_WAIT_MS = 50_000  # below the 60 s after which clients give up on a call


class BadArguments(ValueError):
    """The text says which field is wrong and what it should be."""


class RunCall:
    """A call of `run`; empty strings where nothing was said."""

    __slots__ = ("background", "cwd", "effort", "model", "prompt", "session_id")

    def __init__(self, arguments: Json) -> None:
        """Raises BadArguments."""
        _known("run", arguments, ("prompt", "cwd", "model", "effort", "sessionId", "background"))
        self.prompt = _text(arguments, "prompt", nul=True)
        if not self.prompt.strip():
            raise BadArguments("prompt is missing or blank: say what the agent should do.")
        self.cwd = _text(arguments, "cwd", nul=True).strip() and _text(arguments, "cwd", nul=True)
        self.model = _text(arguments, "model").strip()
        if len(self.model) > MAX_MODEL:
            raise BadArguments(f"model is longer than {MAX_MODEL} characters: pass a name that the CLI knows.")
        self.effort = _text(arguments, "effort").strip()
        if self.effort and self.effort not in EFFORTS:
            raise BadArguments(f"effort is {self.effort[:40]!r}, but can only be {', '.join(EFFORTS)}.")
        self.session_id = _text(arguments, "sessionId").strip()
        if self.session_id and not SESSION_ID.fullmatch(self.session_id):
            raise BadArguments("sessionId is no session id: pass the one that an earlier run named.")
        self.background = _flag(arguments, "background")


def run_id(tool: str, arguments: Json, *, required: bool, others: tuple[str, ...] = ()) -> str:
    """The runId of a call; empty when it has none and need not. Raises BadArguments."""
    _known(tool, arguments, ("runId", *others))
    given = _text(arguments, "runId").strip()
    if (given or required) and not RUN_ID.fullmatch(given):
        raise BadArguments("runId is missing or no run id: pass the one that run returned.")
    return given


def wait_s(arguments: Json) -> float:
    """The waitMs of a call, in seconds. Raises BadArguments."""
    value = arguments.get("waitMs", 0)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_WAIT_MS:
        raise BadArguments(f"waitMs has to be a number from 0 to {MAX_WAIT_MS}.")
    return float(value) / 1000


def _known(tool: str, arguments: Json, names: tuple[str, ...]) -> None:
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise BadArguments(f"{tool} has no field {unknown[0][:80]!r}; it takes {', '.join(names)}.")


def _text(arguments: Json, name: str, *, nul: bool = False) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadArguments(f"{name} has to be a string.")
    if "\0" in value and not nul:
        raise BadArguments(f"{name} holds a NUL character.")
    return encode(value).decode()  # without lone surrogates, which no argument of a program can hold


def _flag(arguments: Json, name: str) -> bool:
    value = arguments.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadArguments(f"{name} has to be true or false.")
    return bool(value)
