"""One check, and how a list of them is shown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from ..base.text import harmless

OK, WARNING, FAILED = "ok", "warning", "failed"
_COLOURS = {OK: "32", WARNING: "33", FAILED: "31"}  # green, yellow, red


@dataclass(frozen=True)
class Check:
    """name: a few words, the same in every run; status: OK, WARNING or FAILED; evidence: what was found.

    cause says why it is so, fix the command or step to take; both are "" for OK.
    """

    name: str
    status: str
    evidence: str
    cause: str = ""
    fix: str = ""


class Seen:
    """What the checks of the surroundings go by: the environment, the sandbox ("" for none) and whether a call got out.

    `reached`: a connection to the app could be opened.
    """

    __slots__ = ("environment", "reached", "sandbox")

    def __init__(self, environment: Mapping[str, str], sandbox: str = "", *, reached: bool = False) -> None:
        self.environment = environment
        self.sandbox = sandbox
        self.reached = reached


# In the order in which they are shown.
SURROUNDINGS: list[Callable[[Seen], Check]] = []


def surrounding(check: Callable[[Seen], Check]) -> Callable[[Seen], Check]:
    """Register a check that needs no session: `doctor` makes it in every run."""
    SURROUNDINGS.append(check)
    return check


def ok(name: str, evidence: str) -> Check:
    """Nothing to do; what was found is still worth telling."""
    return Check(name, OK, evidence)


def warning(name: str, evidence: str, cause: str, fix: str) -> Check:
    """It works, but not as it should."""
    return Check(name, WARNING, evidence, cause, fix)


def failed(name: str, evidence: str, cause: str, fix: str) -> Check:
    """Calls cannot work as long as this is so."""
    return Check(name, FAILED, evidence, cause, fix)


def as_json(checks: list[Check]) -> list[dict]:
    """The checks as JSON objects, all keys always there."""
    return [asdict(check) for check in checks]


def as_text(checks: list[Check], *, colour: bool) -> str:
    """One line a check, with its cause and fix below where it is not ok, and a count at the end."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        status = f"{check.status:<7}"
        if colour:
            status = f"\x1b[{_COLOURS[check.status]}m{status}\x1b[0m"
        lines.append(f"{status}  {check.name:<{width}}  {harmless(check.evidence)}")
        for word, text in (("cause", check.cause), ("fix", check.fix)):
            if text:
                lines.append(f"{'':<9}{'':<{width}}  {word}: {harmless(text)}")
    counts = [f"{sum(check.status == status for check in checks)} {status}" for status in (OK, WARNING, FAILED)]
    return "\n".join([*lines, "", f"{len(checks)} checks: {', '.join(counts)}"])
