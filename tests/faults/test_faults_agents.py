"""Runs of agents under faults: no process and no file is left, and the next run works."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import faults, processes
from support.mcp_client import McpServer
from support.processes import is_alive
from support.scripted_agent import Box, structured, text
from support.waiting import until

from termsprawlctl.agents.clis.cli import Request
from termsprawlctl.agents.clis.registry import agent_cli
from termsprawlctl.agents.model.settings import Settings
from termsprawlctl.agents.runs import run
from termsprawlctl.agents.server import outputs

WORK = "begin()\nend('The answer.')\n"
# With a process that neither a signal to the group nor the end of its parent reaches.
HANG = (
    "begin()\nbackground('import time; time.sleep(600)', start_new_session=True)\n"
    "record('ready', os.getpid())\ntime.sleep(600)\n"
)
# What makes a run, apart from files: the pair of sockets, the supervisor, and what it is told.
PARTS = ("socketpair", faults.STARTS, "sendto", "flock")
# Without opening files: how often a run does depends on the processes of the machine, which it looks at.
CALLS = ("mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "write", "fchmod", *PARTS)


@pytest.fixture
def box(ctl, tmp_path, hermetic_env):
    """Nothing that a test of this box started may outlive it."""
    made = Box(ctl, tmp_path, hermetic_env)
    yield made
    until(lambda: not made.processes(), "the end of all processes of the test")


def agent_run(box, before=(), **options):
    return subprocess.run(
        [*before, box.ctl, "agent", "run", "codex", "p"],
        env=box.env,
        cwd=box.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def steps(box, tmp_path) -> list[faults.Step]:
    argv = [box.ctl, "agent", "run", "codex", "p"]
    calls = ",".join(CALLS)
    return faults.steps(argv, box.temporary, tmp_path / "trace", calls=calls, also=PARTS, env=box.env, cwd=box.project)


def assert_clean_and_working(box, told: str) -> None:
    until(lambda: not box.processes(), f"the end of all processes ({told})")
    done = agent_run(box)
    assert (done.returncode, done.stdout) == (0, "The answer.\n"), told
    assert box.leftovers() == [], told


def test_descriptors_that_a_parent_left_open_are_no_obstacle_to_a_run(box):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("this machine allows too few descriptors")
    subprocess.run(["git", "init", "-q", box.project], check=True)  # so that git is asked, too
    box.script("begin()\nopen('new', 'w').close()\nend('The answer.')\n")
    # Some programs start others with a thousand files open, and select() knows no number above 1023.
    script = (
        f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, {hard}))\n"
        "for number in range(3, 1200): os.dup2(0, number)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = agent_run(box, [sys.executable, "-c", script])
    assert (done.returncode, done.stdout) == (0, "The answer.\n"), done.stderr


def test_whichever_step_of_a_run_fails_it_says_so_and_leaves_nothing(box, tmp_path):
    box.script(WORK)
    for step in steps(box, tmp_path):
        error = "EAGAIN" if step.call == faults.STARTS else "ENOLCK" if step.call == "flock" else "EMFILE"
        done = agent_run(box, faults.failing(step, error))
        told = f"{step!r} -> {error}: {done.returncode} {done.stderr}"
        assert "Traceback" not in done.stderr, told
        assert "internal error" not in done.stderr, told
        assert done.returncode in (0, 1), told
        assert done.returncode == 1 or done.stdout == "The answer.\n", told
        # A directory that could not be removed has to wait for the next run.
        assert step.call in ("rmdir", "unlinkat") or box.leftovers() == [], told
    assert_clean_and_working(box, "after all")


def test_killed_at_whichever_step_a_run_leaves_nothing_that_the_next_one_does_not_clear(box, tmp_path):
    box.script(WORK)
    for step in steps(box, tmp_path):
        done = agent_run(box, faults.dying(step))
        assert done.returncode == -signal.SIGKILL, f"{step!r}: {done.stderr}"
        until(lambda: not box.processes(), f"the end of all processes ({step!r})")
        assert len(box.leftovers()) <= 1, f"{step!r}: {box.leftovers()}"
    assert_clean_and_working(box, "after all")


# --- a server whose run goes on ------------------------------------------------------------


def hanging(box, server, **arguments):
    """A run that has come to its record("ready"); returns the call's id."""
    box.script(HANG)
    call = server.call("run", prompt="p", **arguments)
    until((box.home / "ready").exists, "the run's start")
    (box.home / "ready").unlink()
    return call


def assert_server_works(box, server) -> None:
    box.script(WORK)
    answer = server.answer_to(server.call("run", prompt="p"))
    assert structured(answer)["answer"] == "The answer."
    assert box.processes() == [server.process.pid]
    assert box.leftovers() == []


@pytest.mark.parametrize("background", [False, True], ids=["a call", "in the background"])
@pytest.mark.parametrize("fault", ["SIGQUIT", "SIGHUP", "SIGSTOP and SIGKILL", "the client is killed"])
def test_whatever_ends_a_server_nothing_of_its_runs_goes_on(box, fault, background):
    with box.server() as server:
        hanging(box, server, background=background)
        if fault == "the client is killed":
            # All that a server sees of it.
            server.process.stdout.close()
            server.process.stdin.close()
        else:
            for name in fault.split(" and "):
                server.process.send_signal(getattr(signal, name))
        until(lambda: not box.processes(), "the end of everything")
        until(lambda: not box.leftovers(), "the removal of its files")
    with box.server() as server:
        assert_server_works(box, server)


@pytest.mark.parametrize("work", [False, True], ids=["empty", "with work in it"])
def test_the_workspace_of_a_server_that_was_killed_goes_with_the_next_if_it_is_empty(box, work):
    box.script("begin()\n" + "open('work', 'w').close()\n" * work + "end(os.getcwd())\n")
    argv = [box.ctl, "mcp", "agent", "codex"]

    def a_run(server) -> str:
        server.initialize()
        return structured(server.answer_to(server.call("run", prompt="p")))["answer"]

    with McpServer(argv, box.env) as server:
        first = a_run(server)
    place = os.path.dirname(first)
    assert os.listdir(place) == [os.path.basename(first)]
    with McpServer(argv, box.env) as server:
        second = a_run(server)
        assert set(os.listdir(place)) == {os.path.basename(path) for path in ([first, second] if work else [second])}
        server.close()
        assert server.exit_status() == 0


@pytest.mark.parametrize("who", ["server", "supervisor", "agent"])
def test_a_process_that_is_stopped_and_goes_on_has_lost_nothing(box, who):
    box.script("begin()\nrecord('ready', os.getpid())\nsys.stdin.read()\ntime.sleep(0.2)\nend('The answer.')\n")
    with box.server() as server:
        call = server.call("run", prompt="p")
        until((box.home / "ready").exists, "the run's start")
        agent = box.recorded("ready")
        supervisor = int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])
        pid = {"server": server.process.pid, "supervisor": supervisor, "agent": agent}[who]
        os.kill(pid, signal.SIGSTOP)
        until(lambda: processes.state(pid) == "T", "the stop")
        os.kill(pid, signal.SIGCONT)
        assert structured(server.answer_to(call))["answer"] == "The answer."
        assert_server_works(box, server)


def test_out_of_descriptors_a_run_fails_in_words_and_with_descriptors_again_it_works(box):
    box.script(WORK)
    with box.server() as server:
        server.answer_to(server.call("run", prompt="warm up"))
        opened = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        outcomes = set()
        for spare in range(12):
            with faults.without_descriptors(server.process.pid, but=spare):
                answer = server.answer_to(server.call("run", prompt="p"))
            outcomes.add(answer["result"]["isError"])
            assert "internal error" not in text(answer), text(answer)
            assert "Traceback" not in text(answer), text(answer)
            assert not answer["result"]["isError"] or "Too many open files" in text(answer), (spare, text(answer))
            until(lambda: box.processes() == [server.process.pid], "the end of the run")
            assert len(os.listdir(f"/proc/{server.process.pid}/fd")) == opened, spare
        assert outcomes == {True, False}
        assert_server_works(box, server)


def test_a_system_that_starts_no_more_processes_is_named_and_not_the_cli(box):
    faults.need_strace()
    box.script(WORK)
    # The supervisor alone makes processes in this way.
    before = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", os.devnull, "-e", "trace=clone"]
    done = agent_run(box, [*before, "-e", "inject=clone:error=EAGAIN"])
    assert done.returncode == 1
    assert "cannot start codex: Resource temporarily unavailable. Try again" in done.stderr
    assert "Traceback" not in done.stderr
    assert_clean_and_working(box, "after it")


def test_on_a_full_disk_a_run_fails_in_words_and_with_room_again_it_works(box):
    box.script("begin()\nfor number in range(200):\n    message('x' * 1000)\nend('The answer.')\n")
    with faults.small_disk(box.temporary, 128 << 10) as disk, box.server() as server:
        for filled in (False, True):
            if filled:
                faults.fill(disk)
            answer = server.answer_to(server.call("run", prompt="p"))
            assert answer["result"]["isError"]
            assert "Free some space" in text(answer) or "No space left" in text(answer), text(answer)
            until(lambda: box.processes() == [server.process.pid], "the end of the run")
            assert box.leftovers() == ["filled"] * filled
        (disk / "filled").unlink()
        assert_server_works(box, server)


def test_a_cli_that_prints_without_end_is_ended_before_the_disk_is_full(box, monkeypatch):
    monkeypatch.setattr(run, "MAX_PRINTED_BYTES", 1 << 20)
    for stream in ("stdout", "stderr"):
        box.script(f"begin()\nwhile True: sys.{stream}.write('x' * 100 + chr(10))\n")
        result = in_this_process(box, monkeypatch)
        assert (result.status.name, result.status.code) == ("failed", "flood"), stream
        assert box.leftovers() == []
        assert box.processes() == []


def test_a_list_of_models_without_end_is_no_list(box, monkeypatch):
    monkeypatch.setattr(run, "MAX_ASKED_BYTES", 1 << 20)
    body = (
        "while sys.argv[1] == 'models': sys.stdout.write('a/b' + chr(10))\n"
        "record('argv', sys.argv)\nprint(json.dumps({'type': 'text', 'part': {'type': 'text', 'text': 'hi'}}))\n"
    )
    box.script(body, name="opencode")
    in_this_process(box, monkeypatch, "opencode")
    assert "-m" not in box.recorded("argv")
    assert box.leftovers() == []


def in_this_process(box, monkeypatch, agent: str = "codex"):
    """The result of a run that this process carries out itself."""
    for name, value in box.env.items():
        monkeypatch.setenv(name, value)
    work = run.Run(agent_cli(agent), Request("p", str(box.project)), Settings(), lambda _line: None)
    try:
        return work.execute(threading.Event(), lambda _label: None)
    finally:
        work.close()


def test_where_temporary_files_had_their_place_removed_runs_end_and_work_again_when_it_is_back(box):
    box.env["TMPDIR"] = str(box.temporary)
    with box.server() as server:
        call = hanging(box, server)
        shutil.rmtree(box.temporary)
        server.cancel(call)
        until(lambda: box.processes() == [server.process.pid], "the end of the run")
        box.script("record('where', os.environ.get('TMPDIR'))\n" + WORK)
        assert structured(server.answer_to(server.call("run", prompt="p")))["answer"] == "The answer."
        box.temporary.mkdir()
        assert_server_works(box, server)


@pytest.mark.parametrize("home", ["/proc/no/such/home", "/dev/null"])
def test_without_a_home_that_can_be_written_to_a_long_answer_is_kept_elsewhere(box, home):
    box.script("begin()\nend('a' * 20000)\n")
    box.env["HOME"] = home
    marked = faults.Marked(box.env)
    box.env = marked.env
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        path = Path(structured(answer)["fullOutput"])
        assert path.parent.parent == box.temporary
        assert "a" * 20000 in path.read_text()
    marked.assert_gone()


@pytest.mark.parametrize("saved", ["by their number", "by their size"])
def test_kept_answers_are_bounded_and_the_newest_stays_whatever_the_clock_says(tmp_path, monkeypatch, saved):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(outputs, "KEPT_FILES", 3 if saved == "by their number" else 1000)
    monkeypatch.setattr(outputs, "KEPT_BYTES", 2500 if saved == "by their size" else 1 << 30)
    early = outputs.save(["a" * 1000])
    later = outputs.save(["b" * 1000])
    os.utime(early, (1, 1))
    # Then the clock was set back.
    os.utime(later, (time.time() + 1000, time.time() + 1000))
    third = outputs.save(["c" * 1000])
    fourth = outputs.save(["d" * 1000])
    left = {os.path.join(outputs.directory(), name) for name in os.listdir(outputs.directory())}
    assert {third, fourth} <= left
    assert later not in left


def test_killed_while_it_keeps_an_answer_it_leaves_no_half_one_that_looks_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    program = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
        "from termsprawlctl.agents.server import outputs\n"
        "def pieces():\n    yield 'half'\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "outputs.save(pieces())\n"
    )
    root = Path(outputs.__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program, str(root)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    left = os.listdir(outputs.directory())
    assert len(left) == 1
    assert not left[0].endswith(".txt")
    path = outputs.save(["whole"])
    assert os.listdir(outputs.directory()) == [os.path.basename(path)]
    assert Path(path).read_text() == "whole"


# --- the clock -----------------------------------------------------------------------------


def test_a_clock_that_jumps_at_each_look_ends_no_run_and_is_in_no_figure(box):
    box.script("begin()\nrecord('ready', 1)\nsys.stdin.read()\ntime.sleep(0.3)\nend('The answer.')\n")
    argv = [*faults.with_jumping_clock(box.ctl), *box.argv("--idle-timeout", "60")[1:]]
    with McpServer(argv, {**box.env, "AGENT_CLI_MCP_HEARTBEAT_MS": "60000"}) as server:
        server.initialize()
        for background in (False, True):
            answer = server.answer_to(server.call("run", prompt="p", background=background))
            if background:
                run_id = structured(answer)["runId"]
                answer = server.answer_to(server.call("run_result", runId=run_id, waitMs=20000))
            assert structured(answer)["answer"] == "The answer."
            assert 300 <= structured(answer)["durationMs"] < 60_000
        assert box.leftovers() == []


# --- `agent run` and who reads it ----------------------------------------------------------


STEPS = "begin()\nrecord('ready', os.getpid())\nfor number in range(3000):\n    message('step ' * 40)\n"


@contextlib.contextmanager
def unread(box, stream: str, *words: str):
    """`agent run` with an output that nobody reads, in a pipe that is full."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writer}
    process = subprocess.Popen([box.ctl, "agent", "run", "codex", "p", *words], env=box.env, cwd=box.project, **streams)
    os.close(writer)
    try:
        yield process, reader
    finally:
        os.close(reader)
        process.kill()
        process.wait()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_whose_output_nobody_reads_can_be_ended(box, stream, number):
    ending = "end('The answer.')\n" if stream == "stdout" else "time.sleep(600)\n"
    box.script(STEPS + ending)
    with unread(box, stream) as (process, _):
        until((box.home / "ready").exists, "the run's start")
        if stream == "stdout":
            until(lambda: is_writing(process.pid), "the answer")
        process.send_signal(number)
        assert process.wait(20) in (130, -number)
    until(lambda: not box.processes(), "the end of everything")
    until(lambda: not box.leftovers(), "the removal of the run's files")


def is_writing(pid: int) -> bool:
    """Whether the main thread of a process waits in a write."""
    try:
        return Path(f"/proc/{pid}/syscall").read_text().split()[:2] == ["1", "0x1"]
    except OSError:
        return False


def test_a_reader_of_the_steps_that_stalls_does_not_stop_the_clock_of_a_run(box):
    box.script(STEPS + "record('over', 1)\ntime.sleep(600)\n")
    with unread(box, "stderr", "--timeout", "3") as (process, reader):
        until((box.home / "ready").exists, "the run's start")
        agent = until((box.home / "ready").read_text, "its number")
        until(lambda: not is_alive(int(agent)), "the end of the run at its time limit")
        assert process.poll() is None, "it waits for who reads why"
        threading.Thread(target=lambda: drain(reader), daemon=True).start()
        assert process.wait(20) == 1


def drain(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(descriptor, 65536):
            pass


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_change_nothing_else(box, closed):
    box.script("data = sys.stdin.read()\nrecord('heard', data)\n" + WORK)
    command = f'"$0" agent run codex p --no-activity {closed}'
    done = subprocess.run(
        ["sh", "-c", command, box.ctl], env=box.env, cwd=box.project, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert done.stdout == (b"" if "1>" in closed else b"The answer.\n")
    assert box.recorded("heard") == "p"
    assert box.leftovers() == []
