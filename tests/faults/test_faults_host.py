"""The embedded host with a fault at each of its steps: when it starts, serves an operation, and stops."""

from __future__ import annotations

import errno
import os
import signal

import pytest
from support.host_faults import LONG, FaultyHost, chosen
from support.waiting import until

# What a full disk, and a process without descriptors, cannot do.
NO_SPACE = ["mkdir", "mkfifo", "open-write", "write", "truncate", "fsync", "rename"]
NO_DESCRIPTOR = ["open-read", "open-write", "list", "pipe", "popen"]
READ_ONLY = ["mkdir", "mkfifo", "open-write", "rename", "remove", "chmod"]
SHORTAGES = {"ENOSPC": NO_SPACE, "EMFILE": NO_DESCRIPTOR, "EROFS": READ_ONLY, "ENOMEM": ["popen", "list", "thread"]}


@pytest.fixture
def faulty(ctl, tmp_path_factory, hermetic_env):
    one = FaultyHost(ctl, tmp_path_factory.mktemp("f"), hermetic_env)
    yield one
    one.close()


@pytest.fixture
def serving(faulty):
    """One that runs, with a terminal in it."""
    faulty.plan()
    assert faulty.run()
    faulty.kept = faulty.call("terminal_open")["value"]["nodeId"]
    return faulty


# --- starting and stopping ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_at_any_step_of_a_start_or_a_stop_leaves_what_the_next_host_starts_on(faulty, name):
    for _ in "ab":  # the second one finds everything made
        faulty.plan()
        assert faulty.run()
        assert faulty.end() == 0
    steps = faulty.steps()
    number_of_it = getattr(signal, name)
    for number in chosen(steps, 6 if name == "SIGKILL" else 30):
        # On what the one before left.
        faulty.plan(name, number)
        faulty.run()
        status = faulty.end()
        # Before it looks into the directory for the first time, it ends as any program.
        is_deadly = name == "SIGKILL" or "mkdir /data" not in faulty.steps()[:number]
        was_reached = len(faulty.steps()) >= number
        wanted = (-number_of_it, 130) if is_deadly and was_reached else (0,)
        assert status in wanted, (steps[number - 1], faulty.said)
        faulty.assert_whole()
    faulty.assert_next_works()


@pytest.mark.parametrize("name", SHORTAGES if LONG else ["ENOSPC", "EMFILE", "ENOMEM"])
def test_a_shortage_at_any_step_of_a_start_is_told_in_one_line_and_leaves_nothing(faulty, name):
    faulty.plan(kinds=SHORTAGES[name])
    assert faulty.run()
    assert faulty.end() == 0
    steps = faulty.steps()
    for number in chosen(steps, 7):
        faulty.plan(name, number, kinds=SHORTAGES[name])
        is_ready = faulty.run()
        status = faulty.end()
        lines = faulty.said.splitlines()
        assert status == (0 if is_ready else 1), (steps[number - 1], lines)
        if not is_ready:
            assert any(words in lines[-1] for words in _words(name)), (steps[number - 1], lines)
        faulty.assert_whole()
        assert not faulty.temporary(), steps[number - 1]
    faulty.assert_next_works()


def _words(name: str) -> tuple[str, ...]:
    text = os.strerror(getattr(errno, name))
    return (text, text.lower())


# --- serving ------------------------------------------------------------------------------


def open_one(host) -> dict:
    return host.call("terminal_open", title="one")


def run_one(host) -> dict:
    return host.call("terminal_run", nodeId=host.kept, command="true", timeoutMs=20_000)


def submit(host) -> dict:
    return host.call("terminal_submit", nodeId=host.kept, command=":")


def context(host) -> dict:
    return host.call("canvas_list")


OPERATIONS = {"open": open_one, "run": run_one, "submit": submit, "list": context}


def nodes_of(host) -> set[str]:
    return {node["id"] for node in host.call("canvas_list")["value"]}


def assert_one_truth(host) -> None:
    """Canvas, tmux, sessions and launch folders tell of the same terminals."""
    nodes = nodes_of(host)
    assert host.sessions() == nodes
    assert {one["nodeId"] for one in host.call("agent_status")["value"]} == nodes
    launch = host.data / "agent-tools" / "launch"
    assert {path.name for path in launch.iterdir()} == nodes
    host.assert_whole()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", ["ENOSPC", "EMFILE", "EROFS"] if LONG else ["ENOSPC", "EMFILE"])
def test_a_shortage_at_any_step_of_an_operation_is_its_answer_and_leaves_no_half(serving, name, operation):
    act = OPERATIONS[operation]
    before = nodes_of(serving)
    serving.plan(threads="requests", kinds=SHORTAGES[name])
    assert act(serving)["ok"]
    steps = serving.steps()
    for number in chosen(steps, 3):
        serving.plan(name, number, threads="requests", kinds=SHORTAGES[name])
        answer = act(serving)
        if not answer["ok"]:
            serving.plan()
            again = act(serving)
            assert again["ok"], (steps[number - 1], answer, again)
            assert any(word in answer["error"] for word in _words(name)) or "does not show" in answer["error"], (
                steps[number - 1],
                answer,
            )
    serving.plan()
    assert not serving.temporary()
    assert before <= nodes_of(serving)
    assert_one_truth(serving)
    for one in OPERATIONS.values():
        assert one(serving)["ok"]
    assert serving.end() == 0


def test_a_disk_that_is_full_and_stays_full_takes_no_terminal_away(serving):
    serving.plan("ENOSPC", 1, lasting=True, threads="requests", kinds=NO_SPACE)
    assert not open_one(serving)["ok"]
    assert submit(serving)["ok"]
    assert not serving.call("terminal_close", nodeId=serving.kept)["ok"]
    assert serving.call("terminal_read", nodeId=serving.kept)["ok"]
    serving.plan()
    assert_one_truth(serving)
    assert serving.call("terminal_close", nodeId=serving.kept)["ok"]
    assert nodes_of(serving) == set()


@pytest.mark.parametrize("operation", ["open", "run"])
def test_a_host_that_is_killed_at_any_step_of_an_operation_is_followed_by_one_that_knows_everything(serving, operation):
    act = OPERATIONS[operation]
    serving.plan(threads="requests")
    assert act(serving)["ok"]
    steps = serving.steps()
    for number in chosen(steps, 8):
        serving.plan("SIGKILL", number, threads="requests")
        answer = act(serving)
        was_reached = len(serving.steps()) >= number
        assert serving.end() == (-signal.SIGKILL if was_reached else 0)
        serving.plan()
        assert serving.run(), steps[number - 1]
        # A tmux client that outlived the host may do what it was started for late.
        until(lambda: serving.sessions() == nodes_of(serving), steps[number - 1])
        assert_one_truth(serving)
        if answer["ok"]:  # it was killed after it had answered
            assert answer["value"]["nodeId"] in nodes_of(serving)
    assert not serving.temporary()
    assert serving.end() == 0
    serving.assert_next_works()


@pytest.mark.parametrize("name", ["ENOSPC", "EMFILE", "SIGKILL"])
def test_closing_a_terminal_can_be_finished_whatever_step_of_it_failed(serving, name):
    kinds = SHORTAGES.get(name)
    serving.plan(threads="requests", kinds=kinds)
    assert serving.call("terminal_close", nodeId=serving.kept)["ok"]
    steps = serving.steps()
    for number in chosen(steps, 8):
        serving.plan()
        node = serving.call("terminal_open")["value"]["nodeId"]
        serving.plan(name, number, threads="requests", kinds=kinds)
        answer = serving.call("terminal_close", nodeId=node)
        serving.plan()
        if name == "SIGKILL" and serving.process.poll() is None:
            serving.end(signal.SIGKILL)
        if name == "SIGKILL":
            serving.end()
            assert serving.run()
        if not answer["ok"] and node in nodes_of(serving) | serving.sessions():
            assert serving.call("terminal_close", nodeId=node)["ok"], (steps[number - 1], answer)
        assert node not in nodes_of(serving) | serving.sessions(), steps[number - 1]
        assert_one_truth(serving)
    assert serving.end() == 0
    serving.assert_next_works()


@pytest.mark.parametrize("name", ["ENOSPC", "SIGKILL"])
def test_work_whose_sending_was_cut_off_is_told_and_is_never_sent_twice(serving, name):
    kinds = SHORTAGES.get(name)
    person = serving.session.rpartition("/")[2].removesuffix(".json")
    linked = serving.ctl_run("host", "link", person, serving.kept, "--data", str(serving.data))
    assert linked.returncode == 0, linked.stderr

    def send(number: int) -> dict:
        return serving.call("agent_send", nodeId=serving.kept, messageId=f"m-{number}", text=f"work {number}.")

    serving.plan(threads="requests", kinds=kinds)
    assert send(0)["ok"]
    steps = serving.steps()
    for number in chosen(steps, 8):
        # One that is pending is in the way of the next: a new host ends it, and says so.
        serving.end(signal.SIGKILL)
        serving.plan()
        assert serving.run()
        serving.plan(name, number, threads="requests", kinds=kinds)
        sent = send(number)
        serving.plan()
        if name == "SIGKILL":
            serving.end(signal.SIGKILL)
            assert serving.run()
        again = send(number)
        assert again["ok"], (steps[number - 1], again)
        if sent["ok"]:
            assert again["value"]["id"] == sent["value"]["id"]
        if again["value"]["state"] == "failed":
            assert again["value"]["response"]
        shown = serving.call("terminal_read", nodeId=serving.kept)["value"]["output"]
        assert shown.count(f"work {number}.") <= 1, shown
        serving.assert_whole()
    assert serving.end() == 0
    serving.assert_next_works()


@pytest.mark.parametrize("operation", ["open", "run", "submit"])
def test_a_tmux_server_that_is_killed_at_any_step_of_an_operation_is_replaced_by_the_next_terminal(serving, operation):
    act = OPERATIONS[operation]
    serving.plan(threads="requests", kinds=["popen"])
    assert act(serving)["ok"]
    steps = serving.steps()
    for number in chosen(["popen"] * len(steps)) if LONG else range(1, len(steps) + 1, 4):
        pid = int(serving.tmux("display-message", "-p", "#{pid}"))
        serving.plan("SIGKILL", number, threads="requests", kinds=["popen"], pid=pid)
        answer = act(serving)
        assert answer["ok"] or "Internal error" not in answer["error"], answer
        serving.plan()
        serving.kept = serving.call("terminal_open")["value"]["nodeId"]
        assert act(serving)["ok"], number
    assert serving.end() == 0
    serving.assert_next_works()


@pytest.mark.parametrize("operation", ["open", "run"])
def test_a_data_directory_that_is_deleted_at_any_step_of_an_operation_ends_the_host_and_its_terminals(
    faulty, operation
):
    act = OPERATIONS[operation]
    # Before the terminal's tmux session is made, and when it has just been.
    for kind, times in (("open-read", 1), ("popen", 2))[0 if LONG else 1 :]:
        faulty.plan()
        assert faulty.run()
        faulty.kept = faulty.call("terminal_open")["value"]["nodeId"]
        faulty.plan("rmtree", times, threads="requests", kinds=[kind], path=str(faulty.data))
        answer = act(faulty)
        assert answer["ok"] or "Internal error" not in answer["error"], answer
        assert faulty.process.wait(timeout=30) == 1
        faulty.end()
        faulty.marked.assert_gone()
