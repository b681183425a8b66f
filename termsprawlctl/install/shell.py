"""`install` and `uninstall` for a person or a script: carry out, verify, tell."""

from __future__ import annotations

import os
import shlex

from .. import console, jsontext
from ..errors import FAILED, OK, CtlError
from ..progress import Notice
from . import verify, work
from .dialects import Server
from .work import Plan

_DONE = {work.ADD: "added", work.UPDATE: "updated", work.REMOVE: "removed"}


def install(plan: Plan, server: Server, scope: str, *, write: bool, verified: bool, as_json: bool, cwd: str) -> int:
    """Print the plan, or carry it out, verify it and print that; returns the exit status."""
    own = plan.client.adds(plan.name, server, scope) if plan.client.adds else None
    facts = {**_facts(plan, written=write and plan.changes), "argv": server.argv, "ownCommand": own}
    if not write:
        if as_json:
            return _print_json(facts)
        console.out(plan.snippet() + "\n")
        _tell_plan(plan, own)
        return OK
    plan.carry_out()
    if not as_json:
        _tell_done(plan)
    status = _verify(plan, facts, as_json=as_json, cwd=cwd) if verified else OK
    if as_json:
        _print_json(facts)
    elif plan.client.note:
        console.err(f"termsprawlctl: {plan.client.note}")
    return status


def uninstall(plan: Plan, *, write: bool, as_json: bool) -> int:
    """Print the plan, or carry it out and print that; returns the exit status."""
    facts = _facts(plan, written=write and plan.changes)
    if write:
        plan.carry_out()
    if as_json:
        return _print_json(facts)
    if plan.action == work.ABSENT:
        console.err(f"termsprawlctl: {plan.file.path} has no server {plan.name}; nothing to take out.")
    elif write:
        _tell_done(plan)
    else:
        console.out(plan.snippet() + "\n")
        console.err(f"termsprawlctl: nothing was written. With --write this is taken out of {plan.file.path}.")
    return OK


def _facts(plan: Plan, *, written: bool) -> dict:
    return {
        "client": plan.client.title,
        "file": plan.file.path,
        "name": plan.name,
        "action": plan.action,
        "entry": plan.entry,
        "written": written,
    }


def _tell_plan(plan: Plan, own: list[str] | None) -> None:
    if plan.action == work.KEEP:
        console.err(f"termsprawlctl: {plan.file.path} has it already.")
        return
    console.err(f"termsprawlctl: nothing was written. --write puts this into {plan.file.path}, and checks it.")
    if own:
        console.err(f"termsprawlctl: {plan.client.title}'s own command for it: {shlex.join(own)}")


def _tell_done(plan: Plan) -> None:
    path = plan.file.path
    if plan.action == work.KEEP:
        console.err(f"termsprawlctl: {path} has {plan.name} already; nothing was changed.")
        return
    where = f"from {path}" if plan.action == work.REMOVE else f"in {path}"
    kept = f" Before: {plan.file.backup}" if os.path.exists(plan.file.backup) else ""
    console.err(f"termsprawlctl: {_DONE[plan.action]} {plan.name} {where}.{kept}")


def _verify(plan: Plan, facts: dict, *, as_json: bool, cwd: str) -> int:
    """Ask the server that the file names now, and the client; adds to the facts what they say."""
    say = (lambda _: None) if as_json else console.err
    server = plan.written()
    status = OK
    try:
        with Notice("asking the server for its tools"):
            answer = verify.handshake(server, os.environ)
        facts["verified"] = {"server": answer.server, "tools": answer.tools}
        say(f"termsprawlctl: it answers: {answer.server}, {answer.tools} tools.")
    except CtlError as error:
        facts["verified"] = {"error": str(error)}
        say(f"termsprawlctl: it is written, but does not answer: {error}")
        status = FAILED
    if plan.client.lists is None:
        return status
    with Notice(f"asking {plan.client.title} for its list of servers"):
        line = verify.listed(plan.client.lists, plan.name, os.environ, cwd)
    facts["listed"] = line
    if line == "":
        say(f"termsprawlctl: `{shlex.join(plan.client.lists)}` does not name it.")
        return FAILED
    if line is not None:
        say(f"termsprawlctl: {plan.client.title} lists it: {line}")
    return status


def _print_json(facts: dict) -> int:
    console.out(jsontext.pretty(facts) + "\n")
    return OK
