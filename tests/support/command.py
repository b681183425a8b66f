"""Run the built file as an agent or a script does: a process, bytes in, bytes out."""

from __future__ import annotations

import subprocess

from support.session_files import TOKEN

USAGE_START = b"Usage: termsprawlctl doctor | call OPERATION [JSON_ARGS] | mcp"
NO_SESSION = b"Launch this helper from a termsprawl agent, or provide --session /absolute/path/to/session.json\n"
NO_SESSION += b'Without the app, start a host: eval "$(termsprawlctl host start)"\n'


class Done:
    """How a run ended: status, stdout and stderr as bytes."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out = out
        self.err = err
        checked(out, err)


def checked(out: bytes, err: bytes) -> None:
    """What holds for every run: no token in sight, no traceback, valid UTF-8."""
    assert TOKEN.encode() not in out + err
    assert b"Traceback" not in err
    out.decode("utf-8")
    err.decode("utf-8")


def run(argv: list, env: dict, *, stdin: bytes | None = None, timeout_s: float = 60, **options) -> Done:
    """Run to the end; without `stdin` there is nothing to read."""
    done = subprocess.run(
        argv,
        env=env,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=timeout_s,
        check=False,
        **options,
    )
    return Done(done.returncode, done.stdout, done.stderr)
