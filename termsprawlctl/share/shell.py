"""The bodies of `termsprawlctl tui ...`: one function an action, from arguments to exit status."""

from __future__ import annotations

import os
import re
import subprocess
import time
import uuid
from argparse import Namespace

from ..base import console, jsontext
from ..base.errors import FAILED, OK, UsageError
from . import client, directory, endpoint, wire

MAX_PAUSE_S = 60.0
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_DETACHED_START_S = 30.0

_STALE = (
    "A key was pressed, or the view changed, since it was read. Wait out the pause after a key, read the context again "
    "and select at once. Where the agent's user approves each call in this same client, that key is the one: have both "
    "tools allowed beforehand."
)


def context(args: Namespace) -> int:
    """Print the answer to get_view_context as JSON."""
    endpoint.load(args.endpoint)
    return _print(client.call(args.endpoint, wire.GetViewContext()))


def select(args: Namespace) -> int:
    """Read the view, then ask for the session; prints the answer with the requestId that was used."""
    if not wire.is_session_id(args.session_id):
        raise UsageError(f"{args.session_id} is no session id.", "Take one from `termsprawlctl tui sessions`: ses_...")
    endpoint.load(args.endpoint)
    seen = client.call(args.endpoint, wire.GetViewContext())
    if seen["status"] == wire.REJECTED:
        return _print(seen)
    view = seen["context"]
    request_id = str(uuid.uuid4())
    # Before it is sent: whoever has to find out later what came of it needs the id.
    console.err(f"requestId {request_id}, from revision {view['revision']}")
    request = wire.SelectSession(
        request_id=request_id,
        instance_id=view["instanceId"],
        generation=view["generation"],
        expected_revision=view["revision"],
        session_id=args.session_id,
    )
    answer = client.call(args.endpoint, request)
    status = _print({**answer, "requestId": request_id})
    if answer.get("code") in (wire.TIMEOUT_UNKNOWN, wire.OUTCOME_UNKNOWN):
        console.err(
            "It is not known whether the session was switched. Look before you select again: "
            f"termsprawlctl tui context --endpoint {args.endpoint} (done when its sessionId is {args.session_id})"
        )
    elif answer.get("code") == wire.STALE_REVISION:
        console.err(_STALE)
    return status


def share(args: Namespace) -> int:
    """Share a tmux client until it is revoked or ends."""
    endpoint.require_posix()
    from .sharing import clients, process
    from .sharing.view import Limits

    if not _pause_is_right(args.pause):
        raise UsageError(f"--pause takes 1.5 to {MAX_PAUSE_S:g} seconds.", "For example: --pause 2.")
    options = process.Options(
        limits=Limits(tuple(args.only or ()), args.read_only),
        lasts_s=None if args.lasts is None else duration_s(args.lasts),
        pause_s=args.pause,
        name=args.name,
        revoke_key=args.key,
    )
    if args.detach:
        return _detach(args)
    tmux = clients.open_server(args.socket_path, args.server_name)
    here = args.socket_path is None and args.server_name is None
    pane = os.environ.get("TMUX_PANE") if here and clients.surrounding_socket(os.environ) else None
    return process.run(tmux, clients.find_client(tmux, args.client, pane), options)


def _pause_is_right(seconds: float) -> bool:
    """Whether the user can be left alone for so long: no shorter than the contract says, and not for ever."""
    return 1.5 <= seconds <= MAX_PAUSE_S


def duration_s(text: str) -> float:
    """Seconds out of `1h30m`, `10m`, `45s`. Raises UsageError."""
    match = _DURATION.fullmatch(text)
    seconds = sum(int(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1))) if match else 0
    if not 0 < seconds <= 365 * 86400:
        raise UsageError(f"{text} is no time span.", "Write it like 45s, 10m, 1h or 1h30m.")
    return float(seconds)


def _detach(args: Namespace) -> int:
    """Start the share as a process of its own, print the path once it stands, and leave it to itself."""
    from ..base.program import own_argv

    null = subprocess.DEVNULL
    child = subprocess.Popen(  # noqa: S603 - an argv list, never a shell
        own_argv("tui", "share", *_words(args)),
        stdin=null,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None  # noqa: S101 - PIPE
    assert child.stderr is not None  # noqa: S101
    first = child.stdout.readline().decode("utf-8", "replace").strip()
    if not first.startswith("TUIMCP on: "):
        said = child.stderr.read().decode("utf-8", "replace").strip()
        status = child.wait(_DETACHED_START_S)
        console.err(said or first)
        return status or FAILED
    console.out(first[len("TUIMCP on: ") :].rpartition("  ")[0] + "\n")
    return OK


def _words(args: Namespace) -> list[str]:
    """The options of `tui share` again, but for --detach."""
    named = {
        "--client": args.client,
        "--for": args.lasts,
        "--pause": str(args.pause),
        "--key": args.key,
        "--name": args.name,
        "--socket-path": args.socket_path,
        "--server-name": args.server_name,
    }
    words = [f"{option}={value}" for option, value in named.items() if value is not None]
    words += ["--read-only"] if args.read_only else []
    return [*words, "--only", *args.only] if args.only else words


def sessions(args: Namespace) -> int:
    """Print id and name of each session, one a line or as JSON."""
    endpoint.require_posix()
    from .sharing import clients
    from .sharing.view import Limits

    if args.endpoint is not None:
        endpoint.load(args.endpoint)
        about = directory.about(os.path.dirname(args.endpoint))
        if about is None:
            raise UsageError("this share does not say which tmux it is in.", "Name the tmux server instead.")
        tmux, limits = clients.open_server(about.tmux_socket, None), Limits(about.only)
    else:
        tmux, limits = clients.open_server(args.socket_path, args.server_name), Limits()
    found = {key: row.name for key, row in clients.list_sessions(tmux).items() if limits.allows(row.name)}
    if args.json:
        console.out(jsontext.pretty([{"sessionId": key, "name": name} for key, name in found.items()]) + "\n")
    else:
        console.out("".join(f"{key}\t{name}\n" for key, name in found.items()))
    return OK


def status(args: Namespace) -> int:
    """List the shares that live."""
    endpoint.require_posix()
    found = directory.living()
    if args.json:
        console.out(jsontext.pretty([_described(one) for one in found]) + "\n")
    else:
        console.out("".join(f"{_line(one)}\n" for one in found) or "nothing is shared\n")
    return OK


def revoke(args: Namespace) -> int:
    """End a share, the one there is, or all; also clears away what a killed one left."""
    endpoint.require_posix()
    if args.path is not None:
        path = os.path.abspath(args.path)
        gone = "nobody was sharing there any more; its directory is removed\n"
        console.out("revoked\n" if directory.revoke(path, args.by) else gone)
        return OK
    found = _chosen(args)
    if args.at_client is None and not args.all:
        _require_one(found, "revoke", "or all with --all")
    for one in found:
        directory.revoke(one.path, args.by)
        console.out(f"revoked {one.path}\n")
    return OK


def back(args: Namespace) -> int:
    """Have the client of the share there is show what it showed before the agent's last switch."""
    endpoint.require_posix()
    found = _chosen(args)
    if args.at_client is None:
        _require_one(found, "back", "with --at-client PID")
    for one in found:
        directory.send_back(one)
    return OK


def _chosen(args: Namespace) -> list[directory.Found]:
    """All shares that live, or that of one client where a key was pressed or [Revoke] clicked there."""
    found = directory.living()
    if args.at_client is not None:
        at = (args.at_client, args.socket_path)
        return [one for one in found if one.about and (one.about.client_pid, one.about.tmux_socket) == at]
    return found


def _require_one(found: list[directory.Found], action: str, otherwise: str) -> None:
    if not found:
        raise UsageError("nothing is shared.", "Share first: termsprawlctl tui share.")
    if len(found) > 1:
        listed = "\n".join(f"  {_line(one)}" for one in found)
        raise UsageError(f"{len(found)} shares are running:\n{listed}\n", f"Name one: tui {action} PATH, {otherwise}.")


def _described(found: directory.Found) -> dict:
    about = found.about
    said = {"path": found.path, "pid": found.pid}
    if about is None:
        return said
    return {
        **said,
        "client": about.client,
        "tmuxSocket": about.tmux_socket,
        "startedAt": _time(about.started_at_s),
        "endsAt": _time(about.ends_at_s) if about.ends_at_s else None,
        "only": list(about.only),
        "readOnly": about.read_only,
    }


def _line(found: directory.Found) -> str:
    about = found.about
    if about is None:
        return found.path
    words = [found.path, f"client {about.client}", f"for {_span(time.time() - about.started_at_s)}"]
    if about.ends_at_s:
        words.append(f"{_span(about.ends_at_s - time.time())} left")
    if about.only:
        words.append(f"only {' '.join(about.only)}")
    if about.read_only:
        words.append("read-only")
    return ", ".join(words)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _span(seconds: float) -> str:
    minutes = max(0, int(seconds)) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def clear_dead() -> None:
    """What each `tui` command does at its end: nothing of a share that was killed stays in tmux."""
    if os.name == "posix":
        directory.clear_dead()


def _print(answer: dict) -> int:
    console.out(jsontext.pretty(answer) + "\n")
    return FAILED if answer["status"] == wire.REJECTED else OK
