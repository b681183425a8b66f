"""What a document shows is what happens: its console blocks run as they stand there, in order, in one shell."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

MARK = "@@next-command@@"
# What differs from run to run, in the document as in reality.
VARIABLE = [
    (re.compile(r"\b(n|g|cli|p)-[0-9a-f]{12}\b"), r"\1-<id>"),
    (re.compile(r"\bpid \d+"), "pid <pid>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\bses_[0-9A-Za-z_-]+"), "ses_<id>"),
]
# What a slow machine says meanwhile.
NOTICE = re.compile(r"^termsprawlctl: [^\n]* …\n?", re.MULTILINE)
ANYTHING = "…"  # in the document: whatever stands there


def console_commands(text: str) -> list[tuple[str, str]]:
    """(command, expected output) of every console block; a command may go on over indented lines after a backslash."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command += "\n" + more
            found.append((command, expected))
    return found


def settled(text: str) -> str:
    """Text without what differs from run to run."""
    for pattern, replacement in VARIABLE:
        text = pattern.sub(replacement, text)
    return text.strip("\n")


def matches(expected: str, actual: str) -> bool:
    """Whether that is what the document shows; … there stands for anything."""
    pattern = re.escape(settled(expected)).replace(re.escape(ANYTHING), ".*?")
    return re.fullmatch(pattern, settled(actual), re.DOTALL) is not None


def run_commands(
    commands: list[tuple[str, str]], environment: dict[str, str], folder: Path, *, before: str = "", **options
) -> None:
    """Run the commands in one bash and compare what each prints, on both streams.

    `before` is run first, and what it prints is dropped; `options` are subprocess.run()'s. The home directory in
    `environment` is shown as /home/you.
    """
    script = "".join(f"{command}\necho {MARK}\n" for command in [before or ":", *(command for command, _ in commands)])
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
        **options,
    )
    text = NOTICE.sub("", done.stdout.decode().replace(environment["HOME"], "/home/you"))
    shown = text.split(f"{MARK}\n")[1:]
    for (command, expected), actual in zip(commands, shown):
        assert matches(expected, actual), f"$ {command}\n{settled(actual)}\n\nnot:\n\n{settled(expected)}"
    assert len(shown) == len(commands) + 1


def shell_environment(ctl: str, home: Path, env: dict[str, str]) -> tuple[dict[str, str], Path]:
    """(environment, project folder) in which `termsprawlctl` is on PATH and nothing else is special."""
    project = home / "project"
    project.mkdir(parents=True)
    environment = {
        **env,
        "HOME": str(home),
        "SHELL": "/bin/bash",
        "PATH": os.pathsep.join([os.path.dirname(ctl), env["PATH"]]),
    }
    return environment, project


def stop_host(ctl: str, environment: dict[str, str]) -> None:
    """End the host of that environment, if there is one, with its terminals."""
    data = Path(environment["HOME"], ".local", "state", "termsprawlctl")
    subprocess.run(
        [ctl, "host", "stop", "--data", data, "--kill-sessions"], env=environment, check=False, capture_output=True
    )
