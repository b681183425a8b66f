"""Work that agents give to each other."""

from __future__ import annotations

from typing import Any

from ...operations.table import AGENTS, MAX_WAIT_MS
from ..canvas import model, project_file
from ..messaging import links, messages, tasks
from ..registry.projects import operator_node
from ..registry.status import CLI_FALLBACK, CONNECTED
from ..terminals.delivery import Delivery
from .binding import Arguments, Caller, HostContext, ToolRefusal, handles
from .nodes import other_sessions
from .ordering import Later

CAPABILITIES = ("agent_cards", "agent_send", "agent_task", "agent_reply")
_ENDED = "The recipient's terminal has ended. The work may have been done in part."


@handles("agent_cards")
def agent_cards(host: HostContext, caller: Caller, _args: Arguments) -> list[dict[str, Any]]:
    return cards(host, caller)


def cards(host: HostContext, caller: Caller) -> list[dict[str, Any]]:
    """The caller's view of the agents of its project, itself included.

    Shells are agents for those alone whom a link joins with them: with that the user said
    that somebody acts as an agent there.
    """
    folder = host.projects.folder(caller.project_id)
    document, alive = project_file.load(folder), host.terminals.alive()
    enabled = links.enabled_in(document)
    person = operator_node(caller.project_id)
    found = []
    # The caller first; the others in an order that stays.
    for one in sorted(host.sessions.all(), key=lambda one: (one.node_id != caller.node_id, one.node_id)):
        if one.project_id != caller.project_id or one.node_id == person:
            continue
        is_joined = (caller.node_id, one.node_id) in enabled or (one.node_id, caller.node_id) in enabled
        if one.status.adapter.is_agent or is_joined or one.node_id == caller.node_id:
            peers = sorted(recipient for sender, recipient in enabled if sender == one.node_id)
            node = model.find(document, one.node_id)
            found.append(_card(one, node, peers, running=alive.get(one.node_id) == one.project_id))
    return found


def _card(session: Caller, node: dict[str, Any] | None, peers: list[str], *, running: bool) -> dict[str, Any]:
    program = session.status.adapter.program
    is_reachable = session.status.state in (CONNECTED, CLI_FALLBACK)
    return {
        "nodeId": session.node_id,
        "projectId": session.project_id,
        "name": model.title(node) or session.node_id,
        "preset": model.text_of(node, "agentId") or (program if program in AGENTS else "custom"),
        "command": model.text_of(node, "command") or program,
        "integration": session.status.as_json(),
        "capabilities": list(CAPABILITIES) if is_reachable else [],
        "enabledPeerIds": peers,
        "transport": "termsprawl-local-tools",
        "running": running,
    }


@handles("agent_send")
def agent_send(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    recipient, message_id, text = args["nodeId"], args["messageId"], args["text"]
    messages.check_message_id(message_id)
    messages.check_text(text)
    known = host.tasks.repeated(caller.project_id, caller.node_id, recipient, message_id, text)
    if known is not None:
        return known.as_json()
    other = _recipient(host, caller, recipient)
    task = host.tasks.create(caller.project_id, caller.node_id, recipient, message_id, text)
    try:
        delivery = Delivery(host.terminals, host.panes, host.streams)
        delivery.deliver(recipient, task, is_agent=other.status.adapter.is_verified)
    except BaseException:
        host.tasks.fail(task, "It could not be delivered, or only in part.")
        raise
    return task.as_json()


@handles("agent_task")
def agent_task(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any] | Later:
    task = find_task(host, caller, args["taskId"])

    def look() -> dict[str, Any]:
        if task.state == tasks.SUBMITTED and host.terminals.project_of(task.recipient) != task.project_id:
            host.tasks.fail(task, _ENDED)
        return task.as_json()

    wait_s = max(0.0, min(args.get("waitMs", 0), MAX_WAIT_MS)) / 1000
    if not wait_s or look()["state"] != tasks.SUBMITTED:
        return look()

    def wait() -> dict[str, Any]:
        host.tasks.wait(task, wait_s, host.stopping)
        return look()

    return Later(wait)


@handles("agent_reply")
def agent_reply(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    task = find_task(host, caller, args["taskId"])
    if task.recipient != caller.node_id:
        raise ToolRefusal(f"Task {task.task_id} was not sent to you.", "Only its recipient can answer it.")
    messages.check_text(args["text"])
    host.tasks.answer(task, args.get("state", tasks.COMPLETED), args["text"])
    return task.as_json()


def _recipient(host: HostContext, caller: Caller, node_id: str) -> Caller:
    """The session of a node that the caller may send work to. Raises ToolRefusal."""
    found = [other for other in other_sessions(host, caller) if other.node_id == node_id]
    if not found:
        raise ToolRefusal(f"Unknown agent: {node_id}.", "agent_cards lists the agents.")
    if (caller.node_id, node_id) not in links.enabled(host.projects.folder(caller.project_id)):
        raise ToolRefusal(f"No enabled link leads from you to {node_id}.", "Only the user can make one: ask.")
    if host.terminals.project_of(node_id) != caller.project_id:
        raise ToolRefusal(f"The terminal of {node_id} has ended.", "agent_cards tells which agents are running.")
    return found[0]


def find_task(host: HostContext, caller: Caller, task_id: str) -> tasks.Task:
    """A task that the caller sent or received; another's is as unknown as none."""
    task = host.tasks.get(task_id)
    if task is None or task.project_id != caller.project_id or caller.node_id not in (task.sender, task.recipient):
        raise ToolRefusal(f"Unknown task: {task_id}.", "Finished tasks are kept for 7 days.")
    return task
