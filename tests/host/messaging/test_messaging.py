"""Tasks between agents: rules, states and limits, without a terminal."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import threading
import uuid

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.messaging import messages, tasks

MINUTE_S, DAY_MS = 60.0, 24 * 3600 * 1000


class Clock:
    """Both clocks of a store, moved by hand."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000
        self.s = 5.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path, clock):
    """Open a store, as a host does when it starts; a second one is a restart."""

    def opened_store() -> tasks.TaskStore:
        store = tasks.TaskStore(str(tmp_path / "tasks"), now_ms=lambda: clock.ms, clock_s=lambda: clock.s)
        store.recover()
        return store

    return opened_store


def files(tmp_path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((tmp_path / "tasks").iterdir())]


def test_a_task_is_written_before_it_is_delivered_privately(opened, tmp_path):
    task = opened().create("p", "n-a", "n-b", "m1", "do it")
    assert str(uuid.UUID(task.task_id)) == task.task_id
    (content,) = files(tmp_path)
    assert content["state"] == "submitted"
    assert (content["sourceNodeId"], content["targetNodeId"], content["text"]) == ("n-a", "n-b", "do it")
    path = tmp_path / "tasks" / f"{task.task_id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_same_message_is_the_same_task_and_another_text_a_conflict(opened):
    store = opened()
    task = store.create("p", "n-a", "n-b", "m1", "do it")
    assert store.repeated("p", "n-a", "n-b", "m1", "do it") is task
    for recipient, text in (("n-b", "do that"), ("n-c", "do it")):
        with pytest.raises(CtlError, match="messageId 'm1' was used for another task"):
            store.repeated("p", "n-a", recipient, "m1", text)
    assert store.repeated("p", "n-a", "n-b", "m2", "do it") is None
    assert store.repeated("p", "n-z", "n-b", "m1", "do it") is None
    store.answer(task, tasks.COMPLETED, "done")
    assert store.repeated("p", "n-a", "n-b", "m1", "do it") is task


def test_a_recipient_has_one_pending_task(opened):
    store = opened()
    first = store.create("p", "n-a", "n-b", "m1", "x")
    with pytest.raises(CtlError, match="n-b has a pending task already"):
        store.create("p", "n-c", "n-b", "m1", "x")
    store.create("p", "n-b", "n-a", "m1", "x")
    store.answer(first, tasks.FAILED, "cannot")
    store.create("p", "n-c", "n-b", "m1", "x")


def test_a_task_is_answered_once(opened, tmp_path):
    store = opened()
    task = store.create("p", "n-a", "n-b", "m1", "x")
    store.answer(task, tasks.COMPLETED, "done ü")
    (written,) = files(tmp_path)
    store.answer(task, tasks.COMPLETED, "done ü")
    for state, text in ((tasks.FAILED, "done ü"), (tasks.COMPLETED, "again")):
        with pytest.raises(CtlError, match=r"is over, completed: done ü Do not answer it again"):
            store.answer(task, state, text)
    store.fail(task, "too late")
    assert (task.state, task.response) == ("completed", "done ü")
    assert files(tmp_path) == [written]
    assert written["response"] == "done ü"


def test_a_closed_node_fails_what_it_was_asked_and_what_it_asked(opened):
    store = opened()
    to, of, other = (store.create("p", *pair, "m1", "x") for pair in (("n-a", "n-b"), ("n-b", "n-c"), ("n-c", "n-a")))
    store.fail_all_of("n-b", "closed")
    assert [(task.state, task.response) for task in (to, of, other)] == [
        ("failed", "closed"),
        ("failed", "closed"),
        ("submitted", None),
    ]


def test_a_wait_ends_with_the_answer_with_the_time_and_with_the_host(opened):
    store, stopping = opened(), threading.Event()
    task = store.create("p", "n-a", "n-b", "m1", "x")
    store.wait(task, 0.01, stopping)
    assert task.state == "submitted"
    waiting = threading.Thread(target=store.wait, args=(task, 600.0, stopping))
    waiting.start()
    store.answer(task, tasks.COMPLETED, "y")
    waiting.join(30)
    assert not waiting.is_alive()
    stopping.set()
    store.wait(store.create("p", "n-a", "n-b", "m2", "x"), 600.0, stopping)


def test_a_task_fails_after_fifteen_minutes_and_takes_no_answer_then(opened, clock, tmp_path):
    store = opened()
    task = store.create("p", "n-a", "n-b", "m1", "x")
    clock.s += 15 * MINUTE_S - 0.001
    assert store.get(task.task_id).state == "submitted"
    clock.s += 0.001
    clock.ms -= 1_000_000_000  # what the wall clock does has no say
    assert store.get(task.task_id).state == "failed"
    assert "Not answered within 15 minutes" in files(tmp_path)[0]["response"]
    with pytest.raises(CtlError, match=r"is over, failed: Not answered within 15 minutes"):
        store.answer(task, tasks.COMPLETED, "late")
    store.create("p", "n-a", "n-b", "m2", "x")


def test_a_restart_fails_what_was_pending_and_keeps_what_was_finished(opened, tmp_path):
    store = opened()
    done = store.create("p", "n-a", "n-b", "m1", "x")
    store.answer(done, tasks.COMPLETED, "reply")
    pending = store.create("p", "n-a", "n-b", "m2", "x")
    store = opened()
    assert store.get(done.task_id).response == "reply"
    failed = store.get(pending.task_id)
    assert failed.state == "failed"
    assert "The work was not sent again" in failed.response
    assert store.repeated("p", "n-a", "n-b", "m2", "x") is failed
    assert {content["state"] for content in files(tmp_path)} == {"completed", "failed"}
    store.create("p", "n-a", "n-b", "m3", "x")


def test_finished_tasks_are_kept_for_seven_days(opened, clock, tmp_path):
    store = opened()
    task = store.create("p", "n-a", "n-b", "m1", "x")
    store.answer(task, tasks.COMPLETED, "y")
    clock.ms += 7 * DAY_MS
    assert opened().get(task.task_id).response == "y"
    clock.ms += 1
    store.create("p", "n-a", "n-b", "m2", "x")
    assert store.get(task.task_id) is None
    assert [content["messageId"] for content in files(tmp_path)] == ["m2"]
    clock.ms += 7 * DAY_MS + 1
    opened()  # fails m2 now
    clock.ms += 7 * DAY_MS + 1
    opened()
    assert files(tmp_path) == []


def test_at_most_256_tasks_are_kept_and_the_oldest_finished_ones_go_first(opened, clock, tmp_path):
    store = opened()
    pending = store.create("p", "n-a", "n-z", "old", "x")
    for number in range(260):
        clock.ms += 1
        store.answer(store.create("p", "n-a", "n-b", f"m{number}", "x"), tasks.COMPLETED, "y")
    kept = {content["messageId"] for content in files(tmp_path)}
    assert kept == {"old", *(f"m{number}" for number in range(5, 260))}
    assert store.get(pending.task_id).state == "submitted"


def test_256_pending_tasks_are_the_most(opened, tmp_path):
    store = opened()
    for number in range(256):
        store.create("p", "n-a", f"n-{number}", f"m{number}", "x")
    with pytest.raises(CtlError, match="256 tasks are pending"):
        store.create("p", "n-a", "n-b", "m", "x")
    assert len(files(tmp_path)) == 256


def test_what_is_no_task_in_the_directory_hurts_nothing(opened, tmp_path):
    opened()
    directory = tmp_path / "tasks"
    name = str(uuid.uuid4())
    (directory / f"{name}.json").write_text("{")
    (directory / "other.json").write_text(json.dumps({"id": name}))
    (directory / f".{name}.json.0123456789abcdef").write_text("{")
    os.mkfifo(directory / "pipe.json")
    store = opened()
    assert store.get(name) is None
    assert sorted(os.listdir(directory)) == sorted([f"{name}.json", "other.json", "pipe.json"])


def test_a_task_that_cannot_be_written_does_not_exist_and_an_answer_can_be_repeated(opened, monkeypatch):
    store = opened()
    task = store.create("p", "n-a", "n-b", "m1", "x")

    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "write_atomically", full)
        with pytest.raises(CtlError, match="No space left on device"):
            store.answer(task, tasks.COMPLETED, "y")
        with pytest.raises(CtlError, match="No space left on device"):
            store.create("p", "n-a", "n-c", "m2", "x")
    assert task.state == "submitted"
    assert store.repeated("p", "n-a", "n-c", "m2", "x") is None
    store.answer(task, tasks.COMPLETED, "y")


@pytest.mark.parametrize(
    "text", ["x", "x" * 16_000, "one\n\ttwo\n", "日本 🎉 e\u0301", "';$(ls)`ls`!!", "\U0001f389" * 8000]
)
def test_plain_text_may_be_sent(text):
    messages.check_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "\U0001f389" * 8001,
        "x" * 16_001,
        "a\rb",
        "\x1b[201~",
        "a\x00",
        "\x03",
        "\x7f",
        "\x85",
        "\x9b201~",
        "\ud83d",
    ],
)
def test_text_that_a_terminal_would_act_on_is_refused(text):
    with pytest.raises(CtlError, match=r"1 to 16000 are allowed|control character U|is blank"):
        messages.check_text(text)


def test_the_remedy_for_a_wrong_length_fits_it():
    with pytest.raises(CtlError, match="Write a file"):
        messages.check_text("x" * 16_001)
    with pytest.raises(CtlError, match="Say what") as raised:
        messages.check_text("")
    assert "file" not in str(raised.value)


@pytest.mark.parametrize("message_id", ["", "x" * 129, "a\n\x1b", "a b", "ü"])
def test_an_id_of_a_message_is_short_and_printable(message_id):
    with pytest.raises(CtlError, match="messageId has to be"):
        messages.check_message_id(message_id)


def task(task_id: str, text: str) -> tasks.Task:
    return tasks.Task(task_id, "p", "n-a", "n-b", "m1", text)


# Everything that a shell could take for a command, an end of quoting or an expansion.
HOSTILE = """\
touch {0}/a; touch {0}/b
$(touch {0}/c) `touch {0}/d` <(touch {0}/e)
'; touch {0}/f; '
"; touch {0}/g; "
) }} ] done fi esac EOF
!touch
!!
\\
{1}
TERMSPRAWL_TASK
 | touch {0}/h & touch {0}/i
""".format


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "sh"])
def test_no_shell_runs_any_part_of_a_message(tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    text = HOSTILE(tmp_path, "long " * 800) + f"touch {tmp_path}/last"
    message = messages.compose(task(str(uuid.uuid4()), text), messages.HERE_DOCUMENT)
    words = {"zsh": ["zsh", "-f"]}.get(shell, [shell])
    done = subprocess.run(
        words, input=f"{message}\necho still-here\n".encode(), capture_output=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"still-here\n", b"", 0)
    assert list(tmp_path.iterdir()) == []


def test_a_message_in_comments_is_comments_from_the_first_line_to_the_last():
    message = messages.compose(task("id", "one\n\n two"), messages.COMMENT)
    assert all(line.startswith("# ") for line in message.split("\n"))
    assert message.endswith('\n# {"text":"one\\n\\n two"}')


def test_a_launched_agent_gets_the_bare_text_whatever_its_program_is_called():
    assert messages.form(True, "") == messages.PLAIN
    assert messages.form(False, "bash") == messages.form(False, "") == messages.HERE_DOCUMENT
    assert messages.form(False, "fish") == messages.COMMENT
    assert messages.form(False, "tcsh") == messages.NOTICE
    heading, where, text = messages.compose(task("id-1", 'do "it"\nü'), messages.PLAIN).split("\n")
    assert heading.startswith("A linked agent asks you for work.")
    assert where == 'Task ID: id-1. Source agent: "n-a". Project: "p".'
    assert json.loads(text) == {"text": 'do "it"\nü'}
