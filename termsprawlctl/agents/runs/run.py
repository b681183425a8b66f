"""One run of a CLI from its prompt to its result: started, followed, stopped in time."""

from __future__ import annotations

import os
import re
import threading
import time

from ...base.processtable import MARKER, descendants, has_proc, stat_fields, table
from ..clis.cli import AgentCli, Request
from ..model.reader import Reader
from ..model.settings import PREFIX, Settings
from ..model.text import one_line
from . import scratch
from .capture import Capture
from .child import HARD_LIMIT_S, Child, find_executable
from .firstrun import FirstRun
from .heartbeat import Heartbeat
from .raw import RawReader
from .result import Result, StillRunning
from .snapshot import Watched
from .status import (
    CANCELLED,
    FAILED,
    MAX_MESSAGE,
    STOP_APPROVAL,
    STOP_CANCELLED,
    STOP_FLOOD,
    STOP_IDLE,
    STOP_LINGERING,
    STOP_SILENT,
    STOP_STARTING,
    STOP_TIMEOUT,
    Ending,
    Status,
    disk_full,
    judge,
    judge_raw,
    not_started,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...base.tempfiles import HeldDirectory
    from ..model.types import AskPerson, Report
    from .talk import Talk


LOOK_S = 0.03  # between two looks at the output; of an exit we hear at once
LOOK_AT_TREE_S = 5.0  # between two looks at the processes of a silent CLI
SESSION = 3  # field of /proc/PID/stat behind the name
LINGER_S = 5.0  # a CLI may take this long to exit after its closing event
# A session resumed in a folder that is not its own makes opencode hang without a word;
# no answer's first event has ever taken this long.
SILENT_S = 120.0
START_S = 120.0  # until an agent that is spoken to takes the prompt; npx may install it first
# What a CLI prints is kept on the disk until its run ends. Hours of an agent's work are some
# 100 MB; more than this is a program that has got into a loop.
MAX_PRINTED_BYTES = 1 << 30
REST_S = 1.0  # how long the rest of the output is read in any case; a cancellation has to wait that long
# A CLI that has said it waits for an approval, and says nothing more, waits for somebody who is not there.
APPROVAL_S = 5.0
REMOVED_FILE = "(a temporary file, which is gone)"
MAX_ASKED_BYTES = 16 << 20  # the longest list of models has some 100 kB


class Run:
    """A run that execute() carries out in the calling thread.

    After it, answer() gives the answer whole, until close() removes the run's files.
    `log(line)` is told what the CLI writes to stderr; `resumed_in` is the folder of the
    session's first run where that is known; `workspace` a directory to remove, if it is
    empty, should this process be killed; `ask` puts a question to a person (see Context.ask).
    """

    def __init__(
        self,
        cli: AgentCli,
        request: Request,
        settings: Settings,
        log: Report,
        *,
        resumed_in: str = "",
        workspace: str = "",
        ask: AskPerson | None = None,
    ) -> None:
        self._cli = cli
        self._ask_person = ask
        self._request = request
        self._settings = settings
        self._log = log
        self._resumed_in = resumed_in
        self._workspace = workspace
        self._scratch: HeldDirectory | None = None
        self._capture: Capture | None = None
        self._child: Child | None = None
        self._talk: Talk | None = None
        self._reader: Reader = self._new_reader()
        self._started = 0.0  # the CLI, when it began on the prompt; a second attempt has what is left of the time

    def execute(self, cancelled: threading.Event, report: Report) -> Result:
        """Run to the end; `report(label)` hears of each step, `cancelled` stops it. Raises OSError."""
        begun = time.monotonic()
        executable = find_executable(self._cli.executable, os.environ.get("PATH") or os.defpath)
        if not executable:
            message = f"{self._cli.executable} is not installed, or not on PATH"
            return self._bare_result(Status(FAILED, "not_installed", message, self._cli.install))
        heartbeat = Heartbeat(report, self._settings.heartbeat_s, time.monotonic)
        heartbeat(f"Starting {self._cli.name}")
        environment = _environment(self._cli, self._request.cwd)

        def ask(arguments: list[str], limit_s: float) -> str:
            return self._ask([executable, *arguments], environment, cancelled, heartbeat, limit_s)

        with FirstRun(lambda: self._cli.untouched_home(environment), cancelled, heartbeat) as first:
            self._make_scratch(environment)
            if not (self._request.model or cancelled.is_set()):
                self._request.model = self._cli.default_model(self._request, environment, ask)
            if cancelled.is_set():
                return self._bare_result(Status(CANCELLED, "cancelled", "it was cancelled before it started"))
            argv = [executable, *self._cli.command(self._request)[1:]]
            self._started = time.monotonic()
            result = self._attempt(argv, environment, cancelled, heartbeat, first)
            if not self._reader.events and self._cli.first_run_lost(result.errors) and not cancelled.is_set():
                self._reader = self._new_reader()
                result = self._attempt(argv, environment, cancelled, heartbeat, first)
        if result.status.answered:
            self._reader.activity.ready()
            for label in self._reader.activity.take_labels():
                heartbeat(label)
        result.duration_ms = round((time.monotonic() - begun) * 1000)
        return result

    def answer(self) -> Iterator[str]:
        """Yield the whole answer in pieces."""
        if self._capture is None:
            yield from self._reader.answer_parts()
        elif not self._request.structured:
            yield from self._capture.plain_output()
        else:
            for index, part in enumerate(self._reader.answer_parts()):
                yield "\n\n" if index else ""
                yield from self._capture.whole(part)

    def shortened(self) -> bool:
        """Whether the reader was not given all that was printed, so that only answer() has the whole."""
        return self._capture is not None and self._capture.shortened(structured=self._request.structured)

    def close(self) -> None:
        """Remove the run's files; ends the run if execute() has raised."""
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        if self._scratch is not None:
            scratch.remove(self._scratch.path)
        # Last, because the supervisor removes the files if this process is killed before.
        if self._child is not None:
            self._child.close()
            self._child = None
        if self._scratch is not None:
            self._scratch.release()
            self._scratch = None

    # --- preparing -----------------------------------------------------------------------

    def _new_reader(self) -> Reader:
        cwd = self._request.cwd
        return self._cli.reader(cwd) if self._request.structured else RawReader(cwd)

    def _make_scratch(self, environment: dict[str, str]) -> None:
        # As late as can be: until a supervisor knows of it, it stays until the next run if we are killed.
        self._scratch = scratch.make()
        self._request.scratch = self._scratch.path
        if self._cli.own_temporary:
            environment["TMPDIR"] = os.path.join(self._request.scratch, "tmp")
            os.mkdir(environment["TMPDIR"], mode=0o700)

    def _start(self, argv: list[str], environment: dict[str, str], prompt: str | None) -> tuple[Child, Capture]:
        """A process of this run that is yet to go(), in place of the one before; without a prompt it is spoken to."""
        if self._child is not None:
            self._child.close()
        if self._capture is not None:
            self._capture.close()
        mark = os.urandom(8).hex()
        if not self._settings.keep_background:
            scratch.write_mark(self._request.scratch, mark)
        self._capture = Capture(self._request.scratch, prompt, mark)
        order = {
            "argv": argv,
            "cwd": self._request.cwd,
            "marker": mark,
            "stop_signals": list(self._cli.stop_signals),
            "remove": [self._request.scratch],
            "keep": self._settings.keep_background,
            "held": [self._scratch.descriptor] if self._scratch else [],
            "empty": [self._workspace] if self._workspace else [],
        }
        self._child = Child(order, environment, self._capture.files)
        return self._child, self._capture

    def _ask(
        self,
        argv: list[str],
        environment: dict[str, str],
        cancelled: threading.Event,
        report: Heartbeat,
        limit_s: float,
    ) -> str:
        """What the CLI prints when it is started like this; "" if it fails or has to be stopped."""
        child, capture = self._start(argv, environment, "")
        child.go()
        end_s = time.monotonic() + min(limit_s, self._settings.timeout_s)
        hard_end_s = end_s + self._ending_s()
        stopped = too_much = False
        while not child.gone:
            child.wait(LOOK_S)
            report.beat()
            now = time.monotonic()
            too_much = capture.largest() > MAX_ASKED_BYTES
            if not (stopped or child.ended) and (too_much or cancelled.is_set() or now > end_s):
                stopped = True
                child.end()
                hard_end_s = now + self._ending_s()
            elif now > hard_end_s:
                child.kill()
        return "" if stopped or too_much or child.exit_status else "".join(capture.plain_output())

    def _ending_s(self) -> float:
        """The longest time that the end of a process may take."""
        return sum(seconds for _, seconds in self._cli.stop_signals) + HARD_LIMIT_S + _goodbye_s(self._cli)

    # --- one attempt ---------------------------------------------------------------------

    def _attempt(
        self,
        argv: list[str],
        environment: dict[str, str],
        cancelled: threading.Event,
        report: Heartbeat,
        first: FirstRun,
    ) -> Result:
        child, capture = self._start(argv, environment, None if self._cli.conversational else self._request.prompt)
        watched = Watched(self._request.cwd)  # while the supervisor's own Python starts
        child.go()
        if self._cli.conversational:
            self._talk = _begin_talk(self._reader, self._request, capture, self._ask_person, self._settings.ask_s)
        stop = self._follow(child, capture, cancelled, report, first)
        self._reader.finish()
        if self._request.structured:
            self._cli.complete(self._reader, self._request, environment)
        return self._result(child, capture, stop, watched)

    def _follow(
        self, child: Child, capture: Capture, cancelled: threading.Event, report: Heartbeat, first: FirstRun
    ) -> str:
        """Read until nothing of the run is alive; returns why it was stopped."""
        clocks = Clocks()
        stop, hard_limit = "", 0.0
        while not child.gone:
            child.wait(LOOK_S)
            now = time.monotonic()
            self._read(capture, clocks, now)
            if self._talk is not None:
                _go_on(self._talk, clocks, cancelled, report, now)
            if self._reader.events:
                first.release()
            for label in self._reader.activity.take_labels():
                report(label)
            report.beat(now - clocks.heard)
            if not stop and not child.ended:
                stop = self._reason(child, capture, cancelled, clocks, now)
                hard_limit = now + self._ending_s()
            elif stop and now > hard_limit:
                child.kill()
            if stop and not child.ended and (self._talk is None or self._talk.may_signal(now)):
                child.end()
        if self._talk is not None:
            self._talk.hang_up()
        if stop != STOP_FLOOD:
            stop = self._read_rest(child, capture, cancelled, clocks, report, stop)
        capture.read_errors(self._hear_error, final=True)
        return stop

    def _read_rest(
        self, child: Child, capture: Capture, cancelled: threading.Event, clocks: Clocks, report: Heartbeat, stop: str
    ) -> str:
        """Read what an ended CLI had printed faster than it could be read; returns why the run was stopped."""
        begun = time.monotonic()
        while capture.read_output(self._reader, structured=self._request.structured):
            for label in self._reader.activity.take_labels():
                report(label)
            report.beat()
            now = time.monotonic()
            if now - begun > REST_S:
                reason = self._reason(child, capture, cancelled, clocks, now)
                stop = stop or (reason if reason in (STOP_CANCELLED, STOP_TIMEOUT) else "")
                if stop:
                    break
        capture.end_output(self._reader)
        return stop

    def _read(self, capture: Capture, clocks: Clocks, now: float) -> None:
        printed = capture.read_output(self._reader, structured=self._request.structured)
        warned = capture.read_errors(self._hear_error)
        if self._reader.events != clocks.events:
            clocks.events, clocks.event = self._reader.events, now
        if printed or warned:
            clocks.heard = now

    def _hear_error(self, line: str, *, log: bool) -> None:
        self._reader.error_line(line)
        if self._request.structured:
            self._reader.hear(line)
        if log:
            self._log(f"[{self._cli.name}] {line}")

    def _reason(self, child: Child, capture: Capture, cancelled: threading.Event, clocks: Clocks, now: float) -> str:
        """Why the run has to be stopped now; empty while it may go on."""
        settings, reader = self._settings, self._reader
        silence_s = now - clocks.heard
        uncertain = self._request.session_id and self._cli.same_folder and not self._resumed_in
        reasons = (
            (STOP_CANCELLED, cancelled.is_set()),
            # Events may follow the closing one; mere text does not put off the end.
            (STOP_LINGERING, reader.ended and now - clocks.event > LINGER_S),
            (STOP_TIMEOUT, now - self._started > settings.timeout_s),
            (STOP_FLOOD, capture.largest() > MAX_PRINTED_BYTES),
            (STOP_IDLE, settings.idle_s and silence_s > settings.idle_s and not _at_work(child, clocks, now)),
            (STOP_STARTING, self._talk and not self._talk.begun and now - clocks.begun > START_S),
            (STOP_APPROVAL, reader.waits_for and silence_s > APPROVAL_S and not _at_work(child, clocks, now)),
            (STOP_SILENT, uncertain and not reader.events and silence_s > SILENT_S),
        )
        return next((reason for reason, holds in reasons if holds), "")

    # --- the end -------------------------------------------------------------------------

    def _bare_result(self, status: Status) -> Result:
        return Result(self._cli.name, status, self._reader, self._request)

    def _result(self, child: Child, capture: Capture, stop: str, watched: Watched) -> Result:
        # Files in the run's own directory are removed with it.
        gone = re.compile(re.escape(self._request.scratch) + r"[\w./:-]*")
        errors = gone.sub(REMOVED_FILE, capture.errors_tail())
        output = gone.sub(REMOVED_FILE, capture.output_tail())
        exit_status = None if child.failed_errno else child.exit_status
        end = Ending(exit_status, stop, errors, _limit_s(stop, self._settings))
        if child.failed_errno:
            status = not_started(self._cli, child.failed_errno)
        elif self._request.structured:
            status = judge(self._cli, self._reader, end, lambda: self._cli.fallback_answer(self._request))
        else:
            status = judge_raw(self._cli, end, answered=bool(output))
        if status.name == FAILED and capture.disk_is_full():
            status = disk_full(self._request.scratch, status.message)
        result = self._bare_result(status)
        result.exit_status, result.errors, result.output = exit_status, errors, output
        result.changes = watched.changes(self._reader.activity.files)
        result.changes_partial = watched.partial
        result.still_running = [StillRunning(pid, command) for pid, command in child.still_running]
        if result.still_running:
            _add_note(status, result.still_running, kept=self._settings.keep_background)
        return result


def _environment(cli: AgentCli, cwd: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    # Some CLIs believe PWD more than their working directory.
    environment["PWD"] = cwd
    for name in (MARKER, *cli.unset):
        environment.pop(name, None)
    environment.update(cli.environment)
    return environment


def apply_settings(request: Request, cli: AgentCli, settings: Settings) -> None:
    """Fill in what holds for all runs of a server, or of one command."""
    request.structured = settings.structured or cli.conversational
    request.arguments = settings.arguments
    request.mode = settings.mode
    request.permissions = settings.permissions
    request.mcp_servers = settings.mcp_servers


class Clocks:
    """When things happened in an attempt, in monotonic seconds."""

    def __init__(self) -> None:
        self.begun = self.event = self.heard = time.monotonic()
        self.events = 0
        self.ticked = self.begun
        self.looked = 0.0  # for commands of the agent
        self.at_work = False

    def pass_over(self, now: float, *, waiting: bool) -> None:
        """The time until now is none of the agent's while a person is waited for."""
        if waiting:
            self.begun += now - self.ticked
            self.heard = now
        self.ticked = now


# A CLI that is not spoken to does not wait until the code for those that are is compiled.


def _begin_talk(reader: Reader, request: Request, capture: Capture, ask: AskPerson | None, ask_s: float) -> Talk | None:
    from ..clis.acp import AcpReader
    from .talk import Talk

    if not isinstance(reader, AcpReader):
        return None
    reader.start(request)
    return Talk(reader, capture, ask, ask_s)


def _goodbye_s(cli: AgentCli) -> float:
    """The longest time that the end of a conversation may take before signals."""
    if not cli.conversational:
        return 0.0
    from .talk import CANCEL_S, EXIT_S

    return CANCEL_S + EXIT_S


def _go_on(talk: Talk, clocks: Clocks, cancelled: threading.Event, report: Heartbeat, now: float) -> None:
    talk.go_on(now, report)
    clocks.pass_over(now, waiting=talk.asking)
    if talk.abandoned:
        cancelled.set()


def _limit_s(stop: str, settings: Settings) -> float:
    """The limit that a run was stopped at for this reason; 0 where there is none."""
    limits = {
        STOP_TIMEOUT: settings.timeout_s,
        STOP_IDLE: settings.idle_s,
        STOP_SILENT: SILENT_S,
        STOP_STARTING: START_S,
    }
    return limits.get(stop, 0.0)


def _at_work(child: Child, clocks: Clocks, now: float) -> bool:
    """Whether a command of the agent is running, which may be silent for as long as it likes."""
    if now - clocks.looked > LOOK_AT_TREE_S:
        clocks.looked = now
        try:
            clocks.at_work = child.pid > 0 and has_command(child.pid)
        except OSError:
            clocks.at_work = True  # it cannot be seen: no reason to end a run
    return clocks.at_work


def has_command(pid: int) -> bool:
    """Whether a CLI has started a command: what it runs for the agent has a session of its own, its helpers have not.

    Where sessions cannot be seen each process below it counts. Raises OSError when the table cannot be read.
    """
    processes = table()
    below = descendants(processes, [pid])
    if not has_proc():
        return bool(below)
    own = stat_fields(pid)[SESSION : SESSION + 1]
    return any(stat_fields(one)[SESSION : SESSION + 1] not in ([], own) for one in below if not processes[one].zombie)


def _add_note(status: Status, running: list[StillRunning], *, kept: bool) -> None:
    what = one_line("; ".join(f"{process.command} (pid {process.pid})" for process in running), MAX_MESSAGE)
    fate = "and goes on" if kept else "and was ended with it; --keep-background lets such processes go on"
    status.note = ". ".join(
        part for part in (status.note, f"still running when the agent ended, {fate}: {what}") if part
    )
