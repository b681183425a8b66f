"""What README.md shows is what happens: its console blocks run, in order, in one shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.console_blocks import console_commands, run_commands, shell_environment, stop_host
from support.other_user import STRANGER

SYSTEM_PYTHON = "/usr/bin/python3"
ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


# README's own lines for what is not in a console block.
INSTALL = next(line for line in README.splitlines() if line.startswith("termsprawlctl install claude --write"))
ASKED = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
    '"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}\n'
    '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "session_info", "arguments": {}}}\n'
)


def as_other(argv: list, environment: dict, folder: Path, who: dict, stdin: str = "") -> bytes:
    """What a command prints that another user runs."""
    done = subprocess.run(
        argv, env=environment, cwd=folder, input=stdin.encode(), capture_output=True, timeout=120, check=False, **who
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def served_project(argv: list, environment: dict, folder: Path, who: dict) -> str:
    """The project of an MCP server that the other user's client starts."""
    lines = as_other(argv, environment, folder, who, ASKED).splitlines()
    answers = {answer["id"]: answer for answer in map(json.loads, lines) if "id" in answer}
    return json.loads(answers[2]["result"]["content"][0]["text"])["value"]["projectId"]


@pytest.fixture
def shell(ctl, tmp_path, hermetic_env):
    """(environment, folder) in which `termsprawlctl` is on PATH and nothing else is special."""
    environment, project = shell_environment(ctl, tmp_path / "home" / "you", hermetic_env)
    yield environment, project
    stop_host(ctl, environment)


def test_the_console_blocks_show_what_happens(shell):
    environment, project = shell
    commands = console_commands(README)
    assert len(commands) > 10
    # After the tour has stopped its host, the later blocks need one again.
    stop = [command for command, _ in commands].index("termsprawlctl host stop")
    run_commands(commands[: stop + 1], environment, project)
    run_commands(commands[stop + 1 :], environment, project, before='eval "$(termsprawlctl host start)"')


def test_the_first_ten_minutes_of_another_user_with_an_empty_environment(ctl):
    """The demo, a terminal's output, a run's exit status, the canvas, an MCP client before and after a reboot."""
    if os.geteuid() != 0 or not os.access(SYSTEM_PYTHON, os.X_OK):
        pytest.skip("only root can become another user, and that one needs the system's python3")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        program = shutil.copy2(ctl, folder / "termsprawlctl")
        home = folder / "you"
        environment, project = shell_environment(str(program), home, {"PATH": "/usr/bin:/bin"})
        for path in (home, project):
            os.chown(path, STRANGER, STRANGER)
        commands = console_commands(README)
        stop = [command for command, _ in commands].index("termsprawlctl host stop")
        who = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
        shown = {command.split()[2] for command, _ in commands[:stop] if command.startswith("termsprawlctl call")}
        assert {"terminal_run", "terminal_submit"} < shown
        assert "termsprawlctl map" in [command for command, _ in commands[:stop]]
        demo = shutil.copy2(ROOT / "examples" / "demo.sh", folder)
        try:
            done = as_other(["sh", demo, program], environment, project, who)
            assert "\n6 times 7 is 42\n" in done.decode()
            run_commands(commands[: stop + 1], environment, project, **who)
            as_other(["sh", "-c", INSTALL], environment, project, who)
            written = json.loads((home / ".claude.json").read_text())["mcpServers"]["termsprawl"]
            argv = [written["command"], *written["args"]]
            before = served_project(argv, environment, project, who)
            state = as_other([program, "host", "status", "--json"], environment, project, who)
            os.kill(json.loads(state)["pid"], signal.SIGKILL)
            assert served_project(argv, environment, project, who) == before
        finally:
            data = home / ".local" / "state" / "termsprawlctl"
            words = [program, "host", "stop", "--data", data, "--kill-sessions"]
            subprocess.run(words, env=environment, cwd=project, check=False, capture_output=True, **who)


def test_make_demo_is_the_demo_that_is_tested():
    assert "\nmake demo  " in README
    assert "\ndemo: build\n\tsh examples/demo.sh dist/termsprawlctl\n" in (ROOT / "Makefile").read_text()


def test_every_command_stands_in_the_table():
    from termsprawlctl.cli.parser import COMMANDS

    table = README.partition("## Commands")[2].partition("Each explains itself")[0]
    for name in COMMANDS:
        assert re.search(rf"^\| `{name}\b", table, re.MULTILINE), f"{name} is missing in README.md's table of commands"


def test_the_demo_shows_the_main_job_and_leaves_nothing(ctl, tmp_path, hermetic_env):
    environment = {**hermetic_env, "HOME": "/nonexistent", "TMPDIR": str(tmp_path), "SHELL": "/bin/bash"}
    demo = ROOT / "examples" / "demo.sh"
    done = subprocess.run(["sh", demo, ctl], env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert "\n6 times 7 is 42\n" in done.stdout.decode()
    assert list(tmp_path.iterdir()) == []
