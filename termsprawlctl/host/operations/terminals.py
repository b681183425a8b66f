"""Operations on terminals."""

from __future__ import annotations

import os

from .. import canvas
from ..projects import CLI_STATUS
from ..terminals import DEFAULT_READ_CHARS, MAX_READ_CHARS
from .nodes import others_terminal, terminal


def terminal_open(host, session, args) -> dict:
    folder = host.projects.folder(session.project_id)
    canvas.load(folder)  # a project file that cannot be written to later has to stop this first
    node_id = f"n-{os.urandom(6).hex()}"
    host.sessions.provision(node_id, session.project_id, CLI_STATUS)
    try:
        environment = host.node_environment(node_id, session.project_id)
        host.terminals.open(node_id, session.project_id, folder, environment)
        with canvas.changing(folder) as document:
            canvas.add_terminal(document, node_id, args.get("title") or "Terminal", folder)
    except BaseException:
        host.terminals.kill(node_id)
        host.forget_node(node_id, session.project_id)
        raise
    return {"nodeId": node_id}


def terminal_read(host, session, args) -> dict:
    node_id = terminal(host, session, args)
    max_chars = args.get("maxChars", DEFAULT_READ_CHARS)
    return {"nodeId": node_id, "output": host.terminals.read(node_id, max(0, min(int(max_chars), MAX_READ_CHARS)))}


def terminal_submit(host, session, args) -> dict:
    node_id = others_terminal(host, session, args)
    host.terminals.submit(node_id, args["command"])
    return {"nodeId": node_id, "delivered": True}


def terminal_input(host, session, args) -> dict:
    node_id = others_terminal(host, session, args)
    host.terminals.type(node_id, args["text"])
    return {"nodeId": node_id, "delivered": True}


def terminal_interrupt(host, session, args) -> dict:
    node_id = others_terminal(host, session, args)
    host.terminals.interrupt(node_id)
    return {"nodeId": node_id, "delivered": True}


def terminal_close(host, session, args) -> dict:
    node_id = others_terminal(host, session, args, may_have_ended=True)
    # The file first: when it cannot be written, the terminal stays whole.
    with canvas.changing(host.projects.folder(session.project_id)) as document:
        canvas.remove(document, node_id)
    # A project file may name a node of another project (a copied folder does).
    if host.terminals.project_of(node_id) == session.project_id:
        host.terminals.kill(node_id)
    host.forget_node(node_id, session.project_id)
    return {"nodeId": node_id, "closed": True}
