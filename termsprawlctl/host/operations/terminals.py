"""Operations on terminals."""

from __future__ import annotations

from typing import Any

from ...windows.external import open_window
from ...windows.node_terminal import NodeTerminal
from ..canvas import model, project_file
from ..registry.status import SHELL_STATUS
from ..terminals.nodes import DEFAULT_READ_CHARS, MAX_READ_CHARS
from ..terminals.prompts import Prompt
from ..terminals.readers import reader_of, refusal
from .binding import Arguments, Caller, HostContext, ToolRefusal, handles
from .nodes import is_agent, new_node, others_terminal, terminal, typed_text
from .ordering import Later

DEFAULT_TITLE = "Terminal"


@handles("terminal_open")
def terminal_open(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    return {"nodeId": open_terminal(host, caller, args.get("title") or DEFAULT_TITLE)}


def open_terminal(host: HostContext, caller: Caller, title: str = DEFAULT_TITLE) -> str:
    """A new terminal's node id."""
    with new_node(host, caller) as node:
        host.sessions.provision(node.id, caller.project_id, SHELL_STATUS)
        environment = host.prepare_node(node.id, caller.project_id)
        host.terminals.open(node.id, caller.project_id, node.folder, environment)
        project_file.change(node.folder, lambda document: model.add_terminal(document, node.id, title, node.folder))
    return node.id


@handles("terminal_read")
def terminal_read(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    node_id = terminal(host, caller, args)
    max_chars = args.get("maxChars", DEFAULT_READ_CHARS)
    return {"nodeId": node_id, "output": host.terminals.read(node_id, max(1, min(int(max_chars), MAX_READ_CHARS)))}


@handles("terminal_submit")
def terminal_submit(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    command = typed_text(args, "command")
    node_id = others_terminal(host, caller, args)
    if is_agent(host, node_id):
        raise ToolRefusal(f"{node_id} is an agent's prompt, not a shell.", "Give it work with agent_send.")
    stream = host.streams.get(node_id)
    before = stream.end
    value = {"nodeId": node_id, "delivered": True}
    if args.get("force"):
        host.terminals.submit(node_id, command)
    else:
        value.update(_submit_with_care(host, node_id, command))
    stream.note_act(caller.node_id, before)
    return value


def _submit_with_care(host: HostContext, node_id: str, command: str) -> dict[str, Any]:
    """Submit where something reads lines; what is not the terminal's own shell at its prompt is named in the answer."""
    host.panes.refuse_if_person_types(node_id)
    pane, stream = host.panes.look_for_input(node_id), host.streams.get(node_id)
    reader = reader_of(pane, stream)
    refused = refusal(node_id, reader)
    if refused is not None:
        raise refused
    if reader.shell is None:
        host.terminals.submit(node_id, command)
    else:
        Prompt(node_id, reader.shell, host.terminals, host.panes, stream).submit(command)
    is_own = reader.shell is not None and reader.shell.pid == pane.pid
    return {} if is_own else {"foreground": reader.name}


@handles("terminal_input")
def terminal_input(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    text = typed_text(args, "text")
    node_id = others_terminal(host, caller, args)
    stream = host.streams.get(node_id)
    before = stream.end
    host.terminals.type(node_id, text)
    stream.note_act(caller.node_id, before)
    return {"nodeId": node_id, "delivered": True}


@handles("terminal_interrupt")
def terminal_interrupt(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    node_id = others_terminal(host, caller, args)
    host.terminals.interrupt(node_id)
    return {"nodeId": node_id, "delivered": True}


@handles("terminal_external")
def terminal_external(host: HostContext, caller: Caller, args: Arguments) -> Later:
    node_id = terminal(host, caller, args)

    def open_outside_the_turn() -> dict[str, Any]:
        report = open_window(NodeTerminal(host.paths.root, node_id, server=host.tmux))
        # A started emulator is a success; its window may still be coming up.
        return {"nodeId": node_id, "attached": True, "confirmed": report.client is not None}

    return Later(open_outside_the_turn)


@handles("terminal_close")
def terminal_close(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    node_id = others_terminal(host, caller, args, may_have_ended=True)
    is_ours = host.terminals.is_session_of(node_id, caller.project_id)
    # The file first: when it cannot be written, the terminal stays whole.
    folder = host.projects.folder(caller.project_id)
    project_file.change(folder, lambda document: model.remove(document, node_id))
    # A project file may name a node of another project (a copied folder does).
    if is_ours:
        host.terminals.kill(node_id)
        host.commands.forget_node(node_id)
    host.forget_node(node_id, caller.project_id)
    host.tasks.fail_all_of(node_id, "The node of the agent was closed. The work may have been done in part.")
    return {"nodeId": node_id, "closed": True}
