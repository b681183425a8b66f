"""What linked agents talked about."""

from __future__ import annotations

from typing import Any

from ...agents.clis.registry import recent_turns
from ...base import processtable
from ...base.errors import CtlError
from ...base.tmux import TmuxError
from ..canvas import model, project_file
from ..messaging import context, links
from .binding import Arguments, Caller, HostContext, handles
from .nodes import other_sessions

MAX_PEERS = 100
READER = "claude-jsonl"  # whose transcripts are read


@handles("context_read")
def context_read(host: HostContext, caller: Caller, _args: Arguments) -> dict[str, Any]:
    """The recent turns of every peer that the user joined with the caller for reading."""
    folder = host.projects.folder(caller.project_id)
    joined = {node for pair in links.readable(folder) if caller.node_id in pair for node in pair}
    peers = [other for other in other_sessions(host, caller) if other.node_id in joined][:MAX_PEERS]
    if not peers:
        return {"text": "", "reader": READER, "reason": "No agent is linked to you for reading (host link --context)."}
    document, environment = project_file.load(folder), _environment(host)
    parts, silent = [], []
    for peer in sorted(peers, key=lambda one: one.node_id):
        turns = recent_turns(environment, peer.node_id, _pids(host, peer), folder)
        name = f"{peer.node_id} ({peer.status.adapter.program or 'unknown'})"
        if turns:
            title = model.title(model.find(document, peer.node_id))
            parts.append(context.Part(f"# {name} {title}".rstrip(), turns))
        else:
            silent.append(name)
    if not parts:
        return {
            "text": "",
            "reader": READER,
            "reason": f"No transcript that can be read and told apart: {', '.join(silent)}.",
        }
    return {"text": context.render(parts), "reader": READER}


def _environment(host: HostContext) -> dict[str, str]:
    """What the terminals' programs start out with: it stays as it was when the tmux server started."""
    try:
        listing = host.tmux.run("show-environment", "-g")
    except TmuxError:
        return {}
    rows = [line.partition("=") for line in listing.splitlines()]
    return {name: value for name, sign, value in rows if sign}


def _pids(host: HostContext, peer: Caller) -> list[int]:
    try:
        return processtable.on_terminal(host.terminals.describe(peer.node_id, "#{pane_tty}"))
    except (CtlError, OSError):
        return []  # it has ended, or its processes cannot be seen
