"""Work that agents give to each other."""

from __future__ import annotations

from typing import Any

from ..canvas import model, project_file
from ..messaging import links, messages, tasks
from ..registry.status import SHELL
from ..terminals.delivery import Delivery
from .binding import Arguments, Caller, HostContext, ToolRefusal, handles
from .nodes import other_sessions

_ENDED = "The recipient's terminal has ended. The work may have been done in part."


@handles("agent_cards")
def agent_cards(host: HostContext, caller: Caller, _args: Arguments) -> dict[str, Any]:
    """The caller's view of the agents of its project.

    Shells are agents for those alone whom a link joins with them: with that the user said
    that somebody acts as an agent there.
    """
    folder = host.projects.folder(caller.project_id)
    document, enabled, alive = project_file.load(folder), links.enabled(folder), host.terminals.alive()
    cards = []
    for other in other_sessions(host, caller):
        program = other.status.adapter.program
        pair = (caller.node_id, other.node_id)
        if program == SHELL and pair not in enabled and pair[::-1] not in enabled:
            continue
        node = model.find(document, other.node_id)
        cards.append(
            {
                "nodeId": other.node_id,
                "title": model.title(node),
                "kind": program or "unknown",
                "state": other.status.state,
                "running": alive.get(other.node_id) == caller.project_id,
                "linkEnabled": pair in enabled,
            }
        )
    return {"nodeId": caller.node_id, "agents": cards}


@handles("agent_send")
def agent_send(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    recipient, message_id, text = args["nodeId"], args["messageId"], args["text"]
    messages.check_message_id(message_id)
    messages.check_text(text)
    known = host.tasks.repeated(caller.project_id, caller.node_id, recipient, message_id, text)
    if known is not None:
        return _view(known, caller)
    other = _recipient(host, caller, recipient)
    task = host.tasks.create(caller.project_id, caller.node_id, recipient, message_id, text)
    try:
        delivery = Delivery(host.terminals, host.panes, host.streams)
        delivery.deliver(recipient, task, is_agent=other.status.adapter.is_verified)
    except BaseException:
        host.tasks.fail(task, "It could not be delivered, or only in part.")
        raise
    return _view(task, caller)


@handles("agent_task")
def agent_task(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    task = _task(host, caller, args["taskId"])
    if task.state == tasks.SUBMITTED and host.terminals.project_of(task.recipient) != task.project_id:
        host.tasks.fail(task, _ENDED)
    return _view(task, caller)


@handles("agent_reply")
def agent_reply(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    task = _task(host, caller, args["taskId"])
    if task.recipient != caller.node_id:
        raise ToolRefusal(f"Task {task.task_id} was not sent to you.", "Only its recipient can answer it.")
    messages.check_text(args["text"])
    host.tasks.answer(task, args.get("state", tasks.COMPLETED), args["text"])
    return _view(task, caller)


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


def _task(host: HostContext, caller: Caller, task_id: str) -> tasks.Task:
    """A task that the caller sent or received; another's is as unknown as none."""
    task = host.tasks.get(task_id)
    if task is None or task.project_id != caller.project_id or caller.node_id not in (task.sender, task.recipient):
        raise ToolRefusal(f"Unknown task: {task_id}.", "Finished tasks are kept for 7 days.")
    return task


def _view(task: tasks.Task, caller: Caller) -> dict[str, Any]:
    """What the sender or the recipient sees: the text only the recipient, the sender has it."""
    view = {
        "taskId": task.task_id,
        "messageId": task.message_id,
        "fromNodeId": task.sender,
        "toNodeId": task.recipient,
        "state": task.state,
    }
    if caller.node_id == task.recipient:
        view["text"] = task.text
    if task.reply is not None:
        view["reply"] = task.reply
    if task.reason is not None:
        view["reason"] = task.reason
    return view
