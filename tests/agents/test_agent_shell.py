"""`agent run`: a run for a shell or a script."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from support.waiting import until

WORK = (
    "begin()\nmessage('On it.')\n"
    'item("command_execution", id="i", command="ls", aggregated_output="a.txt\\n", exit_code=0)\n'
    "end('The answer.')\n"
)


def agent(box, *words, stdin=b"", env=None):
    return subprocess.run(
        [box.ctl, "agent", "run", *words],
        env={**box.env, **(env or {})},
        cwd=box.project,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_the_answer_goes_to_stdout_and_the_steps_to_stderr(box):
    box.script(WORK)
    done = agent(box, "codex", "list the files")
    assert (done.returncode, done.stdout) == (0, b"The answer.\n")
    steps = done.stderr.decode().splitlines()
    assert [
        line for line in ("Thinking…", "Said: On it.", "Ran: ls (exit 0)", "Response ready") if line not in steps
    ] == []
    assert "--- Activity (2 steps) ---" in steps
    assert steps[-1].startswith("Session: 11111111-2222")


def test_without_the_activity_there_are_only_the_steps(box):
    box.script(WORK)
    done = agent(box, "codex", "p", "--no-activity")
    assert (done.returncode, done.stdout) == (0, b"The answer.\n")
    assert b"Activity" not in done.stderr


def test_json_holds_all_that_is_known(box):
    box.script(WORK)
    done = agent(box, "codex", "p", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["answer"] == "The answer."
    assert found["status"] == "completed"
    assert [step["kind"] for step in found["activity"]] == ["message", "command"]


def test_it_works_in_the_current_directory_unless_told_otherwise(box, tmp_path):
    box.script("begin()\nend(os.getcwd())\n")
    assert agent(box, "codex", "p").stdout.decode().strip() == str(box.project)
    assert agent(box, "codex", "p", "--cwd", str(tmp_path)).stdout.decode().strip() == str(tmp_path)
    done = agent(box, "codex", "p", "--cwd", "/no/such/folder")
    assert done.returncode == 2
    assert b"there is no such directory" in done.stderr


def test_the_prompt_may_come_from_standard_input(box):
    box.script("data = sys.stdin.read()\nbegin()\nend(data.upper())\n")
    assert agent(box, "codex", "-", stdin="from a pipe é".encode()).stdout == "FROM A PIPE É\n".encode()
    assert agent(box, "codex", " ").returncode == 2


def test_flags_and_arguments_for_the_cli_reach_it(box):
    box.script("record('argv', sys.argv[1:])\nbegin()\nend('ok')\n")
    done = agent(box, "codex", "p", "--model", "m", "--effort", "low", "--resume", "abc", "--", "-s", "read-only")
    assert done.returncode == 0
    argv = box.recorded("argv")
    assert "--model=m" in argv
    assert 'model_reasoning_effort="low"' in argv
    assert argv[-5:] == ["-s", "read-only", "resume", "abc", "-"]


def test_a_failure_is_told_on_stderr_with_exit_status_1(box):
    box.script("begin()\nsay({'type': 'turn.failed', 'error': {'message': '401 Unauthorized'}})\nsys.exit(1)\n")
    done = agent(box, "codex", "p")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"codex failed (exit 1): 401 Unauthorized. Log in" in done.stderr


def test_a_missing_cli_is_told_with_what_to_install(box):
    done = agent(box, "claude", "p")
    assert done.returncode == 1
    assert b"npm install -g @anthropic-ai/claude-code" in done.stderr


@pytest.mark.parametrize(
    "words", [("codex",), ("nobody", "p"), ("codex", "p", "--effort", "huge"), ("codex", "p", "q")]
)
def test_a_wrong_command_line_is_a_usage_error(box, words):
    assert agent(box, *words).returncode == 2


def test_a_large_answer_is_printed_whole(box):
    box.script("begin()\nend('é🦀 line\\n' * 400_000)\n")
    done = agent(box, "codex", "p", "--no-activity")
    assert done.stdout.decode() == "é🦀 line\n" * 400_000 + "\n"
    assert json.loads(agent(box, "codex", "p", "--json").stdout)["answer"] == ("é🦀 line\n" * 400_000).strip("\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing_behind(box, number):
    box.script(
        "begin()\nbackground('import time; time.sleep(600)', start_new_session=True)\n"
        "record('ready', 1)\ntime.sleep(600)\n"
    )
    process = subprocess.Popen(
        [box.ctl, "agent", "run", "codex", "p"],
        env=box.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until((box.home / "ready").exists, "the start")
    process.send_signal(number)
    assert process.wait(20) == (-9 if number == signal.SIGKILL else 130)
    until(lambda: box.processes() == [], "the end of everything")
    until(lambda: box.leftovers() == [], "the removal of the run's files")


def test_an_agent_that_starts_another_run_from_its_shell_is_refused(box):
    box.script(
        "begin()\n"
        f"done = subprocess.run([{box.ctl!r}, 'agent', 'run', 'codex', 'p'], capture_output=True, text=True)\n"
        "end(str(done.returncode) + done.stderr)\n"
    )
    done = agent(box, "codex", "p")
    assert done.stdout.startswith(b"1termsprawlctl: refused: this is inside a run of an agent")


def test_steps_are_shown_while_the_agent_works(box):
    box.script(
        "begin()\n"
        'item("command_execution", "started", id="i", command="make")\n'
        'while not os.path.exists(os.path.join(os.environ["HOME"], "go")): time.sleep(0.01)\nend("ok")\n'
    )
    reading, writing = os.pipe()
    process = subprocess.Popen([box.ctl, "agent", "run", "codex", "p"], env=box.env, cwd=box.project, stderr=writing)
    os.close(writing)
    seen = b""
    while b"Running: make" not in seen:
        data = os.read(reading, 4096)
        assert data, seen
        seen += data
    (box.home / "go").write_text("")
    assert process.wait(20) == 0
    os.close(reading)
