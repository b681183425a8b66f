"""After a host was killed: whatever it was in the middle of is made whole, or undone.

A terminal is a session file, a tmux session that knows its project, and a node in the
project file. A host that is killed while it opens or closes one may leave some of them
without the others, which nobody could see, use or close any more. Work is never thrown
away: a terminal that runs and can be told whose it is gets what is missing.
"""

from __future__ import annotations

import os
import shutil

from ...base.errors import CtlError
from ...operations.table import AGENTS
from ..canvas import model, project_file
from ..messaging import links
from ..registry.projects import operator_node
from ..registry.status import SHELL


def recover(host) -> None:
    """Once, before a host serves. What cannot be looked at stays as it is; the log tells of each step."""
    try:
        running = host.terminals.sessions()
    except CtlError as error:
        host.log(f"the terminals of an earlier host cannot be looked at ({error.message})")
        return
    sessions = {one.node_id: one for one in host.sessions.all()}
    for node_id in [node_id for node_id, project in running.items() if not project]:
        _claim(host, node_id, running, sessions.get(node_id))
    for identity, folder in host.projects.all().items():
        try:
            _recover_project(host, identity, folder, running, sessions)
        except (CtlError, OSError) as error:
            host.log(f"the project in {folder} cannot be looked at ({error})")
    host.monitor.note_ended(set(sessions) - set(running))
    _remove_launch_folders(host, running)


def _claim(host, node_id: str, running: dict, session) -> None:
    """A terminal that does not know its project learns it from its session; without one nobody can reach it."""
    if session is None and os.path.exists(host.paths.session(node_id)):
        return  # unreadable for now, which shows nothing
    if session is None:
        host.terminals.kill(node_id)
        del running[node_id]
        host.log(f"terminal {node_id} belongs to no session: ended")
        return
    try:
        host.terminals.claim(node_id, session.project_id)
    except CtlError:
        del running[node_id]  # it has ended by now
        return
    running[node_id] = session.project_id
    host.log(f"terminal {node_id} belongs to {session.project_id} again")


def _recover_project(host, identity: str, folder: str, running: dict, sessions: dict) -> None:
    for sender, recipient in links.migrate(folder):
        host.log(f"the link from {sender} to {recipient} stands in the project file of {folder} now")
    for name in links.damaged(folder):
        host.log(f"{name} among the links of {folder} is no link; it is left as it is")
    document = project_file.load(folder)
    missing = [
        node_id for node_id, project in running.items() if project == identity and model.find(document, node_id) is None
    ]

    def edit(newest: dict) -> None:
        for node_id in missing:
            if model.find(newest, node_id) is None:
                _add_node(newest, node_id, folder, sessions.get(node_id))

    if missing:
        project_file.change(folder, edit)
        host.log(f"on the canvas of {folder} again: {', '.join(missing)}")
    for session in sessions.values():
        is_terminal = session.project_id == identity and session.node_id != operator_node(identity)
        if is_terminal and session.node_id not in running and model.find(document, session.node_id) is None:
            host.forget_node(session.node_id, identity)
            host.log(f"session {session.node_id} has neither a terminal nor a node: revoked")


def _add_node(document: dict, node_id: str, folder: str, session) -> None:
    program = SHELL if session is None else session.status.adapter.program
    if program == SHELL:
        model.add_terminal(document, node_id, "Terminal", folder)
    else:
        model.add_agent(document, node_id, program if program in AGENTS else "custom", program, folder)


def _remove_launch_folders(host, running: dict) -> None:
    """What was written for terminals that were never started, or are gone."""
    try:
        names = os.listdir(host.paths.launch)
    except OSError:
        return
    for name in names:
        if name not in running and not os.path.exists(host.paths.session(name)):
            shutil.rmtree(os.path.join(host.paths.launch, name), ignore_errors=True)
