"""Operations that only this host has: run and wait in terminals, read what is new, type with care."""

from __future__ import annotations

import time
from typing import Any

from ...base.errors import CtlError
from ...operations.table import MAX_WAIT_MS
from ..terminals.keys import tmux_keys
from ..terminals.panes import EndedError, Pane
from ..terminals.screen.transcript import Transcript, whole_bytes
from ..terminals.shells import commands
from ..terminals.shells.commands import Running
from ..terminals.shells.waiting import Conditions, Found, Wait
from ..terminals.streams import Stream
from .binding import Arguments, Caller, HostContext, ToolRefusal, handles
from .nodes import others_terminal, terminal, typed_text
from .ordering import InTurn, Later
from .terminals import open_terminal, terminal_close

SCREEN_CHARS = 4_000  # of a screen or tail in an answer; a whole screen of the usual size has 3,840
TAIL_CHARS = 2_000
# Of new output in one answer, so that it stays readable for a model.
MAX_NEW_BYTES = 32 << 10
MAX_REQUEST_ID_CHARS = 200
LONGEST_CALL_S = 40.0  # with what a new terminal needs first; a client gives up after 45


@handles("terminal_run")
def terminal_run(host: HostContext, caller: Caller, args: Arguments) -> Later | InTurn:
    command, timeout_s = typed_text(args, "command"), _timeout_s(args)
    node_id = others_terminal(host, caller, args) if "nodeId" in args else None
    if not command.strip():
        raise ToolRefusal("The command is empty; nothing was run.", "Give a command line.")
    if node_id is not None:
        return _start_run(host, caller, node_id, command, timeout_s, commands.PROMPT_WAIT_S)
    end_s = time.monotonic() + LONGEST_CALL_S
    new_id = open_terminal(host, caller)

    def start_in_new() -> Later:
        left_s = max(0.0, min(timeout_s, end_s - time.monotonic()))
        try:
            return _start_run(host, caller, new_id, command, left_s, commands.FIRST_PROMPT_WAIT_S)
        except CtlError as error:  # nothing has run
            terminal_close(host, caller, {"nodeId": new_id})
            raise CtlError(f"{error.message} The terminal was new and is closed again.", error.remedy) from None

    # Its shell may take long to come up: the project does not wait for that.
    return InTurn(start_in_new, new_id)


def _start_run(
    host: HostContext, caller: Caller, node_id: str, command: str, timeout_s: float, prompt_wait_s: float
) -> Later:
    running = host.commands.start(node_id, command, prompt_wait_s)
    running.stream.note_act(caller.node_id, running.began_at)
    return Later(lambda: _finish_run(host, caller.node_id, running, timeout_s))


def _finish_run(host: HostContext, caller: str, running: Running, timeout_s: float) -> dict[str, Any]:
    node_id, recording, pane = running.node_id, running.recording, running.pane
    recording.began.wait(commands.BEGIN_WAIT_S)
    if running.stream.last_act(caller) == running.began_at:
        # The line as it stands at the prompt is not what the command wrote.
        running.stream.note_act(caller, running.output_at())
    if not timeout_s:
        return _started(host, running)
    try:
        how = host.commands.wait(running, timeout_s, host.stopping)
        if how == commands.DONE:
            commands.settle(pane, running.stream)
    finally:
        closed = host.commands.close(running)
    output = running.output()
    value = {
        "nodeId": node_id,
        "output": output.text,
        "exitStatus": closed.status if closed.ended else recording.status,
        "durationMs": recording.duration_ms(),
        "timedOut": how == commands.TIMED_OUT and not closed.ended,
        "truncated": output.truncated,
    }
    if output.truncated:
        value["outputBytes"] = recording.size
    if output.full_screen:
        value["fullScreen"] = True
    if closed.ended:
        return {**value, "ended": True}
    if not running.is_followed():
        value["note"] = "The command was started, but its output does not reach the host: read the terminal."
    if how == commands.TIMED_OUT:
        value.update(_screen_beside(_screen(host, node_id), output.text))
    elif how == commands.OTHER_SHELL:
        value["note"] = "The command has become another shell, which is at its prompt now."
    return {**value, "cursor": running.stream.cursor()}


def _started(host: HostContext, running: Running) -> dict[str, Any]:
    """The answer where nobody waits: all of the output is still to be read, from the cursor on."""
    host.commands.close(running)
    return {
        "nodeId": running.node_id,
        "output": "",
        "exitStatus": None,
        "durationMs": running.recording.duration_ms(),
        "timedOut": True,
        "truncated": False,
        "screen": _screen(host, running.node_id),
        "cursor": running.stream.cursor(running.output_at()),
    }


@handles("terminal_wait")
def terminal_wait(host: HostContext, caller: Caller, args: Arguments) -> Later:
    node_id = terminal(host, caller, args, may_have_ended=True)
    text, pattern = args.get("text"), args.get("pattern")
    if text is not None and pattern is not None:
        raise ToolRefusal("Both text and pattern are given.", "Give one of them.")
    if text == "":
        raise ToolRefusal("The text is empty.", "Give a text, or wait for silence with idleMs.")
    idle_s = None if args.get("idleMs") is None else max(0.0, args["idleMs"] / 1000)
    conditions = Conditions(text, pattern, idle_s, bool(args.get("exit")))
    if conditions.is_empty():
        raise ToolRefusal("Nothing is given to wait for.", "Give text, pattern, idleMs, or exit: true.")
    pane, stream = _pane_and_stream(host, node_id)
    offset = _wait_from(stream, caller.node_id, args.get("cursor"))
    run = _run_since(host, stream, node_id, offset)
    wait = Wait(stream, pane, conditions, run, offset)
    timeout_s = _timeout_s(args)
    return Later(lambda: _finish_wait(host, node_id, stream, wait.run(timeout_s, host.stopping)))


def _wait_from(stream: Stream, caller: str, cursor: str | None) -> int:
    """Where a wait begins to look: at the cursor, else where this caller typed last, else now."""
    if cursor is None:
        last = stream.last_act(caller)
        return stream.end if last is None else last
    offset = stream.offset(cursor)
    if offset is None:
        raise ToolRefusal(
            "That cursor is of an earlier host, or of another terminal.", "Read the terminal, then wait without one."
        )
    return offset


def _run_since(host: HostContext, stream: Stream, node_id: str, offset: int) -> Running | None:
    """The last terminal_run in a terminal, where it has not ended before a place of its stream."""
    running = host.commands.running(node_id)
    if running is not None:
        return running
    last = host.commands.last(node_id)
    if last is None or last.stream is not stream or last.ended_at is None:
        return None
    return last if last.ended_at > offset or last.recording.ended_shell else None


def _finish_wait(host: HostContext, node_id: str, stream: Stream, found: Found) -> dict[str, Any]:
    value: dict[str, Any] = {"nodeId": node_id, "reason": found.reason}
    if found.match is not None:
        value["match"] = found.match[-TAIL_CHARS:]
    if found.exit_status is not None:
        value["exitStatus"] = found.exit_status
    elif found.reason == "exit":
        value["exitStatus"] = None
        value["note"] = "How it went is not known: the shell does not tell. terminal_run tells of every command."
    try:
        value["tail"] = host.terminals.read(node_id, TAIL_CHARS)
    except CtlError:
        return {**value, "tail": found.output[-TAIL_CHARS:], "ended": True}
    return {**value, "cursor": stream.cursor(found.offset)}


@handles("terminal_since")
def terminal_since(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    node_id = terminal(host, caller, args, may_have_ended=True)
    pane, stream = _pane_and_stream(host, node_id)
    cursor = args.get("cursor")
    asked = 0 if cursor is None else stream.offset(cursor)
    part = stream.read(asked or 0)
    start, data = part.start, part.data
    is_missed = cursor is not None and (asked is None or start > asked)
    if cursor is None and len(data) > MAX_NEW_BYTES:
        start += len(data) - MAX_NEW_BYTES  # the newest of it
        data = data[-MAX_NEW_BYTES:]
    taken, before = _part(data), stream.context(start)
    run = _run_since(host, stream, node_id, start)
    ends_at = None if run is None else run.ends_at()
    if ends_at is not None and start < ends_at <= start + len(taken):
        # What the shell writes then, its prompt, is not the command's.
        taken = data[: ends_at - start]
    began_alternate = _began_alternate(before + data, alternate=pane.alternate)
    transcript = Transcript(pane.columns, pane.rows, alternate=began_alternate)
    stream.feed(transcript, start - len(before), before)
    transcript.mark()
    stream.feed(transcript, start, taken)
    end = start + len(taken)
    value = {
        "nodeId": node_id,
        "output": transcript.since(is_whole=False),
        "missed": is_missed,
        "more": len(data) > len(taken) and (len(data) > MAX_NEW_BYTES or end == ends_at),
        "fullScreen": transcript.alternate,
        "cursor": stream.cursor(end),
    }
    if stream.ended and not value["more"]:
        value["ended"] = True
    if run is not None and run.recording.ended.is_set() and (start < (ends_at or end) <= end or "ended" in value):
        value["exitStatus"] = run.recording.status
    return value


def _pane_and_stream(host: HostContext, node_id: str) -> tuple[Pane, Stream]:
    """A terminal's pane and stream; of one that a command has ended, as they were then. Raises EndedError."""
    try:
        return host.panes.look(node_id), host.streams.get(node_id)
    except EndedError:
        last = host.commands.last(node_id)
        if last is None:
            raise
        last.stream.finish()  # the reading thread may still have to hear of it
        last.recording.ended.wait(commands.END_WAIT_S)
        return last.pane, last.stream


@handles("terminal_send")
def terminal_send(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    text = typed_text(args, "text")
    node_id = others_terminal(host, caller, args)
    names, request_id = args.get("keys", []), args["requestId"]
    if not text and not names:
        raise ToolRefusal("Nothing is given to type.", "Give text, keys, or both.")
    if not 0 < len(request_id) <= MAX_REQUEST_ID_CHARS:
        raise ToolRefusal(
            f"requestId has to have 1 to {MAX_REQUEST_ID_CHARS} characters; nothing was typed.", "Give another one."
        )
    request = (node_id, text, tuple(names))
    receipt = host.receipts.find(caller.node_id, request_id, request)
    if receipt is not None:
        return receipt
    keys = tmux_keys(names)
    pane = host.panes.look_for_input(node_id)
    host.panes.refuse_if_person_types(node_id)
    stream = host.streams.get(node_id)
    before = stream.end
    if stream.offset(args["expectRevision"]) != before:
        raise ToolRefusal(
            f"Terminal {node_id} is no longer what you saw at that revision; nothing was typed.",
            "Read on with terminal_since, look again, and send with the new cursor.",
        )
    if text:
        host.terminals.type(node_id, text)
    if keys:
        host.panes.press(node_id, pane, keys)
    stream.note_act(caller.node_id, before)
    receipt = {"nodeId": node_id, "delivered": True, "requestId": request_id, "cursor": stream.cursor(before)}
    return host.receipts.keep(caller.node_id, request_id, request, receipt)


def _timeout_s(args: Arguments) -> float:
    return max(0.0, min(args.get("timeoutMs", MAX_WAIT_MS), MAX_WAIT_MS)) / 1000


def _screen_beside(screen: str, output: str) -> dict[str, Any]:
    """The screen for an answer with this output, which does not say the same twice."""
    return {} if screen == output.rstrip("\n") else {"screen": screen}


def _screen(host: HostContext, node_id: str) -> str:
    """What the terminal shows now; "" when it has just ended."""
    try:
        rows = host.panes.screen(node_id, host.panes.look(node_id))
    except CtlError:
        return ""
    return "\n".join(rows).rstrip("\n")[-SCREEN_CHARS:]


def _part(data: bytes) -> bytes:
    """As much of it as one answer takes, cut at a line's end where there is one, never inside a character."""
    if len(data) > MAX_NEW_BYTES:
        data = data[:MAX_NEW_BYTES]
        data = data[: data.rfind(b"\n") + 1] or data
    return data[: whole_bytes(data)]


def _began_alternate(data: bytes, *, alternate: bool) -> bool:
    """Whether the alternate screen was shown before the data, when `alternate` tells of the time after it."""
    switches = [data.find(b"\x1b[?1049" + final) for final in (b"h", b"l")]
    if max(switches) < 0:
        return alternate
    on, off = (place if place >= 0 else len(data) for place in switches)
    return off < on
