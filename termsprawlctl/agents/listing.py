"""`agent list`: which agents can be run here, what of them is installed, and whether they are logged in."""

from __future__ import annotations

import functools
import os

from ..base import console, jsontext, threads
from ..base.errors import OK, CtlError, UsageError
from ..base.processes import find_program, output_of
from ..base.text import harmless
from .clis.cli import AgentCli
from .clis.registry import ACP_NAMES, NAMES, agent_cli, own_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model.types import Json


VERSION_S = 8.0
MAX_VERSION_BYTES = 4096


def show(*, as_json: bool) -> int:
    """Print the list; returns the exit status."""
    rows = [_row(name) for name in (*NAMES, *ACP_NAMES, *own_names(os.environ))]
    asking = [threads.start(functools.partial(_ask_version, row)) for row in rows if row["path"]]
    for thread in asking:
        thread.join()
    if as_json:
        console.out(jsontext.pretty({"agents": rows}) + "\n")
        return OK
    for row in rows:
        state = row["error"] or (
            f"{row['version'] or 'version unknown'}  {row['path']}" if row["path"] else row["install"]
        )
        console.out(harmless(f"{row['name']:<10} {_spoken(row)}  {state}\n"))
    return OK


def _spoken(row: Json) -> str:
    installed = "installed" if row["path"] else "missing  "
    return f"{'acp   ' if row['acp'] else 'native'}  {installed}  logged in: {row['loggedIn']:<7}"


def _row(name: str) -> Json:
    row = {"name": name, "acp": True, "path": "", "version": "", "loggedIn": "unknown", "install": "", "error": ""}
    try:
        cli = agent_cli(name)
    except UsageError as problem:
        return {**row, "error": str(problem)}
    path = find_program(cli.executable) or ""
    logged_in = "yes" if _is_logged_in(cli) else "unknown"
    return {**row, "acp": cli.conversational, "path": path, "loggedIn": logged_in, "install": cli.install}


def _is_logged_in(cli: AgentCli) -> bool:
    """Whether a key or the file of a login is there; a file may have expired, but its absence proves nothing."""
    home = os.environ.get("HOME") or os.path.expanduser("~")
    variables = any(os.environ.get(name) for name in cli.key_variables)
    return variables or any(os.path.isfile(os.path.join(home, path)) for path in cli.login_files)


def _ask_version(row: Json) -> None:
    try:
        output = output_of([row["path"], "--version"], timeout_s=VERSION_S, max_bytes=MAX_VERSION_BYTES)
    except CtlError:
        return
    lines = output.decode("utf-8", "replace").split("\n")
    row["version"] = next((line.strip()[:80] for line in lines if any(sign.isdigit() for sign in line)), "")
