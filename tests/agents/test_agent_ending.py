"""Whatever ends a run, nothing of it lives on: no process, no file, no descriptor."""

from __future__ import annotations

import os
import signal

import pytest
from support.command import run
from support.processes import is_alive
from support.scripted_agent import structured, text
from support.waiting import until

# Processes that a signal to the CLI's group does not reach, or does not move.
ESCAPES = {
    "a child": "background('import time; time.sleep(600)')",
    "a session of its own": "background('import time; time.sleep(600)', start_new_session=True)",
    "a daemon": (
        "background('import os, time\\nif os.fork(): os._exit(0)\\nos.setsid()\\nif os.fork(): os._exit(0)\\n"
        "time.sleep(600)').wait()"
    ),
    "a daemon without the environment": (
        "background('import os, sys, time\\nif os.fork(): os._exit(0)\\nos.setsid()\\nif os.fork(): os._exit(0)\\n"
        'home = {"HOME": os.environ["HOME"]}\\n'
        'os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], home)'
        "').wait()"
    ),
    "one that ignores SIGTERM": (
        "background('import signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\ntime.sleep(600)')"
    ),
    "one that is stopped": "os.kill(background('import time; time.sleep(600)', start_new_session=True).pid, 19)",
}
HANG = (
    "begin()\n"
    'item("command_execution", "started", id="i", command="/bin/bash -lc hang", status="in_progress")\n'
    "{escape}\n"
    'record("ready", os.getpid())\n'
    "time.sleep(600)\n"
)
STUBBORN = "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"


def started(box, server, body, **arguments):
    """A run of this body that has come to its record("ready"); returns the call's id."""
    box.script(body)
    call = server.call("run", prompt="p", **arguments)
    until((box.home / "ready").exists, "the run's start")
    return call


@pytest.mark.parametrize(
    ("how", "escape"),
    [
        *(("cancel", escape) for escape in ESCAPES),
        *(("SIGKILL", escape) for escape in ESCAPES),
        ("SIGTERM", "a daemon"),
        ("SIGTERM", "one that ignores SIGTERM"),
        ("end of input", "a session of its own"),
        ("time-out", "a daemon without the environment"),
    ],
)
def test_no_process_of_a_run_outlives_its_end(box, how, escape):
    limit = {"TIMEOUT_MS": "1500"} if how == "time-out" else {}
    with box.server(**limit) as server:
        call = started(box, server, HANG.format(escape=ESCAPES[escape]))
        assert len(box.processes()) >= 3
        if how == "cancel":
            server.cancel(call)
            until(lambda: box.processes() == [server.process.pid], "the end of the run")
            messages = []
            server.ask("ping", request_id="ping")
            while not messages or "id" not in messages[-1]:
                messages.append(server.read())
            assert messages[-1]["id"] == "ping"
        elif how == "time-out":
            answer = server.answer_to(call)
            assert answer["result"]["isError"] is True
            assert structured(answer)["status"] == "timed_out"
            assert "1.5 s" in text(answer).splitlines()[0]
            assert "-> not finished" in text(answer)
            assert box.processes() == [server.process.pid]
        else:
            if how == "end of input":
                server.close()
            else:
                server.signal(getattr(signal, how))
            assert server.exit_status() == (-9 if how == "SIGKILL" else 0)
            if how != "SIGKILL":
                assert box.processes() == []
    until(lambda: box.processes() == [], "the end of everything")
    until(lambda: box.leftovers() == [], "the removal of the run's files")


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_what_a_run_left_in_the_background_is_ended_with_it(box, escape):
    box.script(f"begin()\n{escape}\nend('Started it.')\n")
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert structured(answer)["answer"] == "Started it."
        assert box.processes() == [server.process.pid]


def test_a_cli_that_ignores_every_stop_signal_is_killed(box):
    # Time enough for it to start on a crowded machine.
    with box.server(TIMEOUT_MS="5000") as server:
        answer = server.answer_to(started(box, server, STUBBORN + HANG.format(escape="pass")))
        assert structured(answer)["exitCode"] == -9
        assert box.processes() == [server.process.pid]


def test_the_cli_is_asked_first_in_the_way_that_it_likes(box):
    body = (
        "def stop(number, frame):\n    record('heard', number)\n    sys.exit(1)\n"
        "signal.signal(signal.SIGINT, stop)\nsignal.signal(signal.SIGTERM, stop)\n"
    )
    with box.server() as server:
        server.cancel(started(box, server, body + HANG.format(escape="pass")))
        until((box.home / "heard").exists, "the signal")
        assert box.recorded("heard") == signal.SIGINT


def test_a_cli_that_has_answered_and_does_not_exit_is_ended_and_its_answer_stands(box):
    box.script("begin()\nend('The answer.')\ntime.sleep(600)\n")
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert structured(answer)["status"] == "completed"
        assert structured(answer)["answer"] == "The answer."
        assert "did not exit" in structured(answer)["note"]


def test_text_that_goes_on_after_the_last_event_does_not_put_off_the_end(box):
    box.script("begin()\nend('The answer.')\nwhile True:\n    print('noise', flush=True)\n    time.sleep(0.1)\n")
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert structured(answer)["answer"] == "The answer."
        assert "did not exit" in structured(answer)["note"]


@pytest.mark.parametrize("how", ["cancel", "SIGTERM", "SIGKILL"])
def test_a_cli_that_is_asked_for_its_models_ends_with_everything_it_started(box, how):
    box.script(
        "assert sys.argv[1] == 'models'\n"
        "background('import time; time.sleep(600)', start_new_session=True)\n"
        "record('asked', 1)\ntime.sleep(600)\n",
        name="opencode",
    )
    with box.server(agent="opencode", HEARTBEAT_MS="50") as server:
        call = server.call("run", prompt="p", token="t")
        until((box.home / "asked").exists, "the question")
        beats = 0
        while beats < 3:
            beats += server.read()["params"]["message"] == "Starting opencode"
        if how == "cancel":
            server.cancel(call)
        else:
            server.process.send_signal(getattr(signal, how))
        until(lambda: not box.family(), "the end of the question")
        until(lambda: not box.leftovers(), "the removal of its files")


def test_a_stranger_that_holds_the_output_open_does_not_hold_up_the_result(box):
    box.script(
        "begin()\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "end('ok')\n"
    )
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt="p")))["answer"] == "ok"
        assert box.processes() == [server.process.pid]


def test_a_silent_run_is_ended_by_the_idle_time_out_and_a_busy_one_is_not(box):
    with box.server("--idle-timeout", "1") as server:
        answer = server.answer_to(started(box, server, HANG.format(escape="pass")))
        assert structured(answer)["status"] == "timed_out"
        assert structured(answer)["error"]["code"] == "idle"
        box.script(
            "begin()\nfor number in range(30):\n    message(str(number))\n    time.sleep(0.05)\nend('ok')\n",
        )
        assert structured(server.answer_to(server.call("run", prompt="p")))["answer"] == "ok"


def test_a_supervisor_that_is_killed_takes_the_run_with_it(box):
    with box.server() as server:
        call = started(box, server, HANG.format(escape=ESCAPES["a session of its own"]))
        supervisors = [pid for pid in box.family() if parent_of(pid) == server.process.pid]
        assert len(supervisors) == 1
        os.kill(supervisors[0], signal.SIGKILL)
        answer = server.answer_to(call)
        assert structured(answer)["status"] == "failed"
        assert box.processes() == [server.process.pid]
        assert box.leftovers() == []


def killed_with_its_guards(box, escape) -> list[int]:
    """The processes that are left of a run whose server and supervisor were killed at once."""
    with box.server() as server:
        started(box, server, HANG.format(escape=ESCAPES[escape]))
        guards = [server.process.pid, *(pid for pid in box.family() if parent_of(pid) == server.process.pid)]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, neither can follow the other's end
            for pid in guards:
                os.kill(pid, number)
        server.process.wait()
    return until(lambda: not set(box.family()) & set(guards[1:]) and box.family(), "the end of the guards")


@pytest.mark.parametrize("escape", ["a child", "a session of its own", "a daemon", "one that ignores SIGTERM"])
def test_what_is_left_of_a_run_whose_guards_were_killed_at_once_ends_with_the_next_run(box, escape):
    left = killed_with_its_guards(box, escape)
    box.script("begin()\nend('ok')\n")
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt="p")))["status"] == "completed"
        assert [pid for pid in left if is_alive(pid)] == []
        assert box.leftovers() == []


@pytest.mark.parametrize(
    "words", ["agent list", "doctor --explain", "host status", "host prune", "host stop", "mcp agent codex"]
)
def test_what_is_left_of_it_ends_with_any_command_that_is_in_no_hurry(box, words):
    left = killed_with_its_guards(box, "a session of its own")
    (box.bin / "codex").unlink()
    run([box.ctl, *words.split(" ")], {**box.env, "TERMSPRAWL_DATA": str(box.home / "data")})
    assert [pid for pid in left if is_alive(pid)] == []
    assert box.leftovers() == []


def test_a_run_that_goes_on_is_left_alone_by_such_a_command(box):
    with box.server() as server:
        started(box, server, HANG.format(escape=ESCAPES["a session of its own"]))
        alive = box.family()
        run([box.ctl, "host", "status"], {**box.env, "TERMSPRAWL_DATA": str(box.home / "data")})
        assert set(alive) <= set(box.family())
        assert box.leftovers() != []


def test_a_vanished_reader_of_our_output_ends_the_run(box):
    with box.server() as server:
        started(box, server, HANG.format(escape=ESCAPES["a session of its own"]))
        server.process.stdout.close()
        assert server.exit_status() == 0
        assert box.processes() == []


def test_input_that_ends_while_a_run_goes_on_leaves_it_time_to_finish(box):
    with box.server() as server:
        call = started(box, server, "begin()\nrecord('ready', 1)\ntime.sleep(0.5)\nend('In time.')\n")
        server.close()
        assert structured(server.answer_to(call))["answer"] == "In time."
        assert server.exit_status() == 0


def test_a_hundred_runs_leave_no_process_no_file_and_no_descriptor(box):
    box.script(f"begin()\n{ESCAPES['a session of its own']}\nend('ok')\n")
    with box.server("--max-runs", "4") as server:
        server.answer_to(server.call("run", prompt="warm up"))
        descriptors = open_files(server.process.pid)
        threads = len(os.listdir(f"/proc/{server.process.pid}/task"))
        calls = [server.call("run", prompt="p") for _ in range(99)]
        waiting = set(calls)
        while waiting:
            message = server.read()
            if "id" in message:
                waiting.remove(message["id"])
                assert message["result"]["structuredContent"]["status"] == "completed", message
        assert box.processes() == [server.process.pid]
        assert open_files(server.process.pid) == descriptors
        assert len(os.listdir(f"/proc/{server.process.pid}/task")) <= threads + 100  # idle workers, no more than calls
        assert box.leftovers() == []
        assert os.listdir(box.project) == []
        server.close()
        assert server.exit_status() == 0
    assert os.listdir(box.home) == []


def parent_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def open_files(pid):
    return sorted(os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0] for name in os.listdir(f"/proc/{pid}/fd"))


def test_processes_of_others_are_left_alone(box):
    other = os.spawnve(os.P_NOWAIT, "/bin/sleep", ["sleep", "600"], {"HOME": "/elsewhere"})
    try:
        with box.server() as server:
            server.cancel(started(box, server, HANG.format(escape="pass")))
            until(lambda: box.processes() == [server.process.pid], "the end of the run")
        assert is_alive(other)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)


def test_one_run_that_ends_leaves_the_others_running(box):
    with box.server() as server:
        first = started(box, server, HANG.format(escape=ESCAPES["a daemon"]))
        before = set(until(lambda: len(box.family()) == 3 and box.family(), "the daemon's last process alone"))
        (box.home / "ready").unlink()
        second = started(box, server, HANG.format(escape=ESCAPES["a daemon"]))
        server.cancel(second)
        until(lambda: set(box.family()) == before, "the end of the second run alone")
        server.cancel(first)
        until(lambda: box.family() == [], "the end of the first run")
