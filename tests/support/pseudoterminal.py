"""Run a program at a terminal of its own and read what the terminal shows."""

from __future__ import annotations

import os
import select
import subprocess
import time


def run_in_terminal(argv: list[str], env: dict[str, str], timeout_s: float = 60.0) -> tuple[int, str]:
    """Run to the end with a terminal as standard input and outputs; returns the status and all that was shown."""
    terminal, inside = os.openpty()
    shown = b""
    end_s = time.monotonic() + timeout_s
    with subprocess.Popen(argv, env=env, stdin=inside, stdout=inside, stderr=inside, start_new_session=True) as child:
        os.close(inside)
        try:
            while True:
                assert time.monotonic() < end_s, f"{argv} did not end; it shows {shown!r}"
                if select.select([terminal], [], [], 0.2)[0]:
                    try:
                        data = os.read(terminal, 65536)
                    except OSError:  # Linux: nobody has the terminal open any more
                        data = b""
                    if not data:
                        break
                    shown += data
        except BaseException:
            child.kill()
            raise
        finally:
            os.close(terminal)
    return child.returncode, shown.decode("utf-8", "replace")
