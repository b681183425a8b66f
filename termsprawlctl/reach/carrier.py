"""Running guest.py over a carrier: any command that passes standard input and output on to a `sh -s` elsewhere.

`sh -s` are words that need no quotes in any shell, so it is the same for `ssh box`, whose
words a login shell reads over there, and for `docker exec -i web`, whose words nobody reads.
All else goes over standard input, as hexadecimal digits and base64.
"""

from __future__ import annotations

import base64
import json
import secrets
from importlib.util import find_spec
from typing import Any

from ..base.errors import CtlError
from ..base.processes import Completed, run
from ..base.text import harmless

_GUEST = f"{__package__}.guest"
# Where programs lie that the PATH of a shell that is no login shell often lacks.
_MORE_FOLDERS = "/usr/local/bin:/opt/homebrew/bin:/opt/local/bin"
_PYTHONS = " ".join(["python3", *(f"python3.{minor}" for minor in range(15, 8, -1))])
_TOO_OLD, _NO_PYTHON = 99, "termsprawlctl-finds-no-python"
# Any Python since 2.7 can parse the first two lines.
_SCRIPT = """\
PATH=$PATH:%(folders)s
export PATH
for python in %(pythons)s; do
command -v $python >/dev/null 2>&1 || continue
$python -ISBXutf8 -c 'import sys
sys.version_info >= (3, 9) or sys.exit(%(too_old)d)
exec(bytes.fromhex(sys.stdin.readline()).decode())' 2>&1 <<'END'
%(code)s
%(request)s
%(data)s
END
status=$?
[ $status = %(too_old)d ] || exit $status
done
echo %(no_python)s
"""
TIMEOUT_S = 120.0
_LAST_WORDS = 300  # of what somebody else printed


class StepError(CtlError):
    """A step towards a host elsewhere that failed; `step` is its name in `reach check`."""

    def __init__(self, step: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.step = step


def ask(
    carrier: list[str], action: str, *, data: bytes = b"", cwd: str | None = None, **request: object
) -> dict[str, Any]:
    """The answer of guest.py to one request, `action` and what it needs. Raises StepError, CtlError."""
    mark = secrets.token_hex(16)
    script = _SCRIPT % {
        "folders": _MORE_FOLDERS,
        "pythons": _PYTHONS,
        "too_old": _TOO_OLD,
        "code": _guest_source().hex(),
        # No text of ours begins with END, so that nothing ends the document early.
        "request": json.dumps({"mark": mark, "action": action, **request}),
        "data": base64.encodebytes(data).decode().rstrip("\n"),
        "no_python": _NO_PYTHON,
    }
    done = run([*carrier, "sh", "-s"], stdin=script.encode(), timeout_s=TIMEOUT_S, cwd=cwd, with_its_own=True)
    answer = _answer(done, mark)
    if "error" in answer:
        raise StepError(_text(answer, "step"), _text(answer, "error"), _text(answer, "fix"))
    return answer


def _guest_source() -> bytes:
    spec = find_spec(_GUEST)
    source: str = spec.loader.get_source(_GUEST)  # type: ignore[union-attr] # a file or an archive has it
    return source.encode()


def _answer(done: Completed, mark: str) -> dict[str, Any]:
    for line in done.stdout.split(b"\n"):
        if line.startswith(mark.encode()):
            try:
                answer = json.loads(line[len(mark) :])
            except ValueError:
                break
            if isinstance(answer, dict):
                return answer
    if _NO_PYTHON.encode() in done.stdout:
        raise StepError("python", "there is no Python 3.9 or newer over there.", "Install python3 there.")
    words = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")[-_LAST_WORDS:]
    said = f" It printed: {harmless(words)}" if words else ""
    raise StepError(
        "shell",
        f"no answer came from `sh -s` over there (exit status {done.status}).{said}",
        "Its login shell or that shell's start-up file may end first: try `ssh DESTINATION true`.",
    )


def _text(answer: dict[str, Any], key: str) -> str:
    return harmless(str(answer.get(key, "")))[:2000]
