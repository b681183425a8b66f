"""What README.md shows is what happens: its console blocks run, in order, in one shell."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MARK = "@@next-command@@"
# What differs from run to run, in the document as in reality.
VARIABLE = [
    (re.compile(r"\b(n|cli|p)-[0-9a-f]{12}\b"), r"\1-<id>"),
    (re.compile(r"\bpid \d+"), "pid <pid>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
]


def console_commands(text: str) -> list[tuple[str, str]]:
    """(command, expected output) of every console block."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append((command, expected))
    return found


def settled(text: str) -> str:
    """Text without what differs from run to run."""
    for pattern, replacement in VARIABLE:
        text = pattern.sub(replacement, text)
    return text.strip("\n")


@pytest.fixture
def shell(ctl, tmp_path, hermetic_env):
    """(environment, folder) in which `termsprawlctl` is on PATH and nothing else is special."""
    home = tmp_path / "home" / "you"
    project = home / "project"
    project.mkdir(parents=True)
    environment = {
        **hermetic_env,
        "HOME": str(home),
        "SHELL": "/bin/bash",
        "PATH": os.pathsep.join([os.path.dirname(ctl), hermetic_env["PATH"]]),
    }
    yield environment, project
    data = home / ".local" / "state" / "termsprawlctl"
    subprocess.run([ctl, "host", "stop", "--data", data, "--kill-sessions"], env=environment, check=False)


def test_the_console_blocks_show_what_happens(shell):
    environment, project = shell
    commands = console_commands(README)
    assert len(commands) > 10
    # After the tour has stopped its host, the later blocks need one again.
    script = "".join(
        f"{command}\n"
        + ('eval "$(termsprawlctl host start)"\n' if command == "termsprawlctl host stop" else "")
        + f"echo {MARK}\n"
        for command, _ in commands
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment,
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    shown = done.stdout.decode().replace(environment["HOME"], "/home/you").split(f"{MARK}\n")
    for (command, expected), actual in zip(commands, shown):
        assert settled(actual) == settled(expected), command
    assert len(shown) == len(commands) + 1


def test_every_command_stands_in_the_table():
    from termsprawlctl.cli import COMMANDS

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
