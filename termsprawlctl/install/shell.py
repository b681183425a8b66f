"""`install` and `uninstall` for a person or a script: carry out, verify, report."""

from __future__ import annotations

import dataclasses
import os
import shlex

from ..base import console, jsontext
from ..base.console import Notice
from ..base.errors import FAILED, OK, CtlError
from ..base.processes import Interruptible
from . import allow, verify
from .allow import Rule
from .clients import PROJECT
from .dialects import Server
from .plan import ABSENT, ADD, KEEP, REMOVE, UPDATE, Plan

_DONE = {ADD: "added", UPDATE: "updated", REMOVE: "removed"}


class Output:
    """How to report: JSON on standard output, or words on standard error, or next to none."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet

    def say(self, text: str) -> None:
        """Something that went as wished."""
        if not self.as_json and not self.quiet:
            console.err(f"termsprawlctl: {text}")

    def complain(self, text: str) -> None:
        """Something that did not; JSON has it among its facts."""
        if not self.as_json:
            console.err(f"termsprawlctl: {text}")

    def result(self, facts: dict) -> None:
        """Where JSON is wanted, all of it."""
        if self.as_json:
            console.out(jsontext.pretty(facts) + "\n")


def install(
    plan: Plan,
    server: Server,
    scope: str,
    *,
    rule: Rule | None = None,
    write: bool,
    verified: bool,
    output: Output,
    cwd: str,
) -> int:
    """Print the plan, or carry it out, verify it and print that; returns the exit status.

    `rule`: what has the client call the server's tools without asking, where that is wanted and is not in the entry.
    """
    own = plan.client.adds(plan.name, server, scope) if plan.client.adds else None
    facts = {**_facts(plan, written=write and plan.changes), "argv": server.argv, "ownCommand": own}
    status = OK
    read_only = plan.changes and plan.file.is_read_only()
    if rule:
        facts["allowed"] = {"file": rule.file, "rules": rule.items}
        allow.check(rule)
    if write:
        plan.carry_out()
        _report_done(plan, output, read_only=read_only)
        if rule:
            allow.add(rule)
            output.say(f"allowed in {rule.file}: {', '.join(rule.items)}.")
        if verified:
            with Interruptible():
                # Not in a project's folder, unless it is about that: its files may have a client start servers.
                folder = cwd if scope == PROJECT else os.path.expanduser("~")
                status = _verify(plan, facts, output, server, folder)
        if plan.client.note:
            output.say(plan.client.note)
    elif not output.as_json:
        console.out(plan.snippet() + "\n")
        if rule:
            console.out(rule.shown() + "\n")
            output.say(f"the second one goes into {rule.file}.")
        _tell_plan(plan, own, output)
    output.result(facts)
    return status


def uninstall(plan: Plan, *, write: bool, output: Output) -> int:
    """Print the plan, or carry it out and print that; returns the exit status.

    The rule that allowed its tools goes before, see disallow().
    """
    facts = _facts(plan, written=write and plan.changes)
    read_only = plan.changes and plan.file.is_read_only()
    if write:
        plan.carry_out()
    if plan.action == ABSENT:
        output.say(f"{plan.file.path} has no server {plan.name}; nothing to remove.")
    elif write:
        _report_done(plan, output, read_only=read_only)
    elif not output.as_json:
        console.out(plan.snippet() + "\n")
        output.say(f"nothing was written. --write removes this from {plan.file.path}.")
    output.result(facts)
    return OK


def disallow(rule: Rule, output: Output) -> None:
    """Remove the rule that goes with an entry."""
    if allow.remove(rule):
        output.say(f"no longer allowed in {rule.file}: {', '.join(rule.items)}.")


def _facts(plan: Plan, *, written: bool) -> dict:
    return {
        "client": plan.client.title,
        "file": plan.file.path,
        "name": plan.name,
        "action": plan.action,
        "entry": plan.entry,
        "written": written,
    }


def _tell_plan(plan: Plan, own: list[str] | None, output: Output) -> None:
    if plan.action == KEEP:
        output.say(f"{plan.file.path} has it already.")
        return
    output.say(f"nothing was written. --write puts this into {plan.file.path}, and checks it.")
    if own:
        output.say(f"{plan.client.title}'s own command for it: {shlex.join(own)}")


def _report_done(plan: Plan, output: Output, *, read_only: bool) -> None:
    output.say(_done(plan))
    if read_only:
        output.say(f"{plan.file.path} was read-only; it was replaced, and its mode was kept.")


def _done(plan: Plan) -> str:
    path = plan.file.path
    if plan.action == KEEP:
        return f"{path} has {plan.name} already; nothing was changed."
    where = f"from {path}" if plan.action == REMOVE else f"in {path}"
    kept = f" Before: {plan.file.backup}" if os.path.exists(plan.file.backup) else ""
    return f"{_DONE[plan.action]} {plan.name} {where}.{kept}"


def _verify(plan: Plan, facts: dict, output: Output, asked: Server, folder: str) -> int:
    """Ask the server that the file names now, and the client; adds to the facts what they say."""
    server = plan.written()
    status = OK
    others = sorted(set(server.environment) - set(asked.environment))
    if others:
        # Who wrote the file before us, perhaps with the project, must not decide how our program runs.
        server = dataclasses.replace(server, environment=asked.environment)
        output.complain(f"the entry also sets {', '.join(others)}, as it did before; remove what is not yours.")
    try:
        with Notice("asking the server for its tools", quiet=output.quiet):
            answer = verify.handshake(server, os.environ)
        facts["verified"] = {"server": answer.server, "tools": answer.tools}
        output.say(f"it answers: {answer.server}, {answer.tools} tools.")
    except CtlError as error:
        facts["verified"] = {"error": str(error)}
        output.complain(f"it is written, but does not answer: {error}")
        status = FAILED
    if plan.client.lists is None:
        return status
    with Notice(f"asking {plan.client.title} for its list of servers", quiet=output.quiet):
        line = verify.listed(plan.client.lists, plan.name, os.environ, folder)
    facts["listed"] = line
    if line == "":
        output.complain(f"`{shlex.join(plan.client.lists)}` does not name it.")
        return FAILED
    if line is not None:
        output.say(f"{plan.client.title} lists it: {line}")
    return status
