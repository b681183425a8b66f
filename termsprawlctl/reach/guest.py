"""What runs over there: this text alone, sent over a connection to a Python that has nothing else of ours.

Reads one line of JSON from standard input, and what follows it as base64 where a file is sent.
Prints one line, `MARK {...}`: an answer, or {"step", "error", "fix"} where a step failed. Whatever
a login shell prints before it has no such mark.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from typing import Any

NAME = "termsprawlctl"
TIMEOUT_S = 60
DOOR_S = 20


class Refused(Exception):
    """A step that failed: its name, what is wrong, what to do."""

    def __init__(self, step: str, error: str, fix: str = "") -> None:
        super().__init__(step, error, fix)
        self.answer = {"step": step, "error": error, "fix": fix}


def home() -> str:
    """The user's home directory; the current one where none is set."""
    return os.path.abspath(os.path.expanduser("~"))


def place(digest: str) -> str:
    """The path for a copy of the file with this checksum, in directories that only this user can change.

    Raises Refused, OSError.
    """
    path = os.path.join(home(), ".cache")
    os.makedirs(path, exist_ok=True)
    above = os.path.realpath(path)
    while above != os.path.dirname(above):
        status = os.stat(above)
        shared = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.getuid()) or shared:
            raise Refused("files", f"another user can change {above} there.", "Only this user may: chmod o-w, chown.")
        above = os.path.dirname(above)
    for name in (NAME, digest):
        path = os.path.join(path, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise Refused("files", f"{path} there is no directory of this user's.", "Move it away.")
        if status.st_mode & 0o077:
            os.chmod(path, 0o700)
    return os.path.join(path, NAME)


def is_whole(path: str, digest: str) -> bool:
    """Whether the file is there with this checksum, and nobody else can change it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            return False
        return hashlib.sha256(file.read()).hexdigest() == digest


def put(path: str, data: bytes) -> None:
    """Write the file in one step, 0700. Raises OSError."""
    temporary = os.path.join(os.path.dirname(path), f".{NAME}.{os.urandom(8).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def copy(request: dict[str, Any]) -> str:
    """The path of the copy, which is made where data came along. "" where it is missing. Raises Refused, OSError."""
    digest = request["sha256"]
    path = place(digest)
    if is_whole(path, digest):
        return path
    data = base64.b64decode(sys.stdin.read())
    if not data:
        return ""
    if hashlib.sha256(data).hexdigest() != digest:
        raise Refused("copy", "the file came with a wrong checksum and was thrown away.", "Try again.")
    put(path, data)
    return path


def run(argv: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end. Raises OSError, TimeoutExpired."""
    return subprocess.run(  # noqa: S603 - an argv, no shell
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False, cwd=home()
    )


def ours(path: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the copy to its end."""
    return run([sys.executable, "-ISBXutf8", path, *words])


def look(_request: dict[str, Any]) -> dict[str, Any]:
    """What is there, and nothing is changed."""
    tmux = find("tmux")
    version = ""
    if tmux:
        done = run([tmux, "-V"])
        version = done.stdout.decode("utf-8", "replace").strip()
    free = shutil.disk_usage(home()).free
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, "tmux": version, "free": free, "host": running_host(), "door": door()}


def door() -> str:
    """The path of a socket that says a word to the first who connects, for some seconds: does ssh lead there?"""
    folder = tempfile.mkdtemp(prefix=f"{NAME}-")
    path = os.path.join(folder, "door")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    listening.settimeout(DOOR_S)
    if os.fork() == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):  # else the connection of this request stays open for it
                os.dup2(null, descriptor)
            listening.accept()[0].sendall(b"!")
        finally:
            os.unlink(path)
            os.rmdir(folder)
            os._exit(0)
    return path


def find(name: str) -> str:
    """The path of a program; "" where none is on PATH."""
    paths = [os.path.join(folder, name) for folder in os.environ.get("PATH", "").split(":") if os.path.isabs(folder)]
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def running_host() -> str:
    """The file that the host of the usual data directory runs from; "" where none runs."""
    state = os.environ.get("XDG_STATE_HOME", "")
    data = os.path.join(state if os.path.isabs(state) else os.path.join(home(), ".local", "state"), NAME)
    try:
        with open(os.path.join(data, "agent-tools", "host.flock"), encoding="utf-8") as file:
            pid = int(json.load(file)["pid"])
        done = run(["ps", "-ww", "-o", "args=", "-p", str(pid)])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    before, found, _ = done.stdout.decode("utf-8", "replace").partition(" host run")
    return before.split()[-1] if found and before.strip() else ""


def send(_request: dict[str, Any], path: str) -> dict[str, Any]:
    """The file is there afterwards."""
    return {"file": path, "python": sys.executable}


def reach(request: dict[str, Any], path: str) -> dict[str, Any]:
    """A host runs afterwards and serves the project: its session and its socket."""
    if request["restart"]:
        ours(path, "host", "stop")
    project = os.path.join(home(), os.path.expanduser(request["project"] or "~"))
    done = ours(path, "host", "start", "--json", "--project", project)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise Refused("host", words.partition(f"{NAME}: ")[2] or words or "the host did not start there.")
    facts = json.loads(done.stdout)
    if not os.path.exists(facts["socket"]):
        raise Refused(
            "version",
            "the host that runs there is an older one, which listens on no socket.",
            "Restart it with --update; its terminals keep running.",
        )
    with open(facts["sessionFile"], encoding="utf-8") as file:
        session = json.load(file)
    return {**facts, "session": session, "file": path, "python": sys.executable}


def clients(request: dict[str, Any], path: str) -> dict[str, Any]:
    """Who looks at a node's terminal, which is there; the copy of our file knows how to ask tmux."""
    sys.path.insert(0, path)
    from termsprawlctl.base.errors import CtlError
    from termsprawlctl.windows.node_terminal import NodeTerminal

    try:
        node = NodeTerminal(request["at"], request["node"])
        node.check()
        return {"clients": [vars(client) for client in node.clients()]}
    except CtlError as error:
        raise Refused("node", error.message, error.remedy) from None


def leave(request: dict[str, Any]) -> dict[str, Any]:
    """No host runs afterwards, none of its terminals either, and no copy of the file is left."""
    path = place(request["sha256"])
    if is_whole(path, request["sha256"]):
        done = ours(path, "host", "stop", "--kill-sessions")
        if done.returncode:
            raise Refused("host", done.stderr.decode("utf-8", "replace").strip())
    shutil.rmtree(os.path.dirname(os.path.dirname(path)))
    return {}


def main() -> None:
    """Answer one request."""
    os.umask(0o077)
    request = json.loads(sys.stdin.readline())
    alone = {"look": look, "leave": leave}
    with_file = {"send": send, "reach": reach, "clients": clients}
    action = request["action"]
    try:
        if action in alone:
            answer = alone[action](request)
        else:
            path = copy(request)
            answer = with_file[action](request, path) if path else {"needs": "file"}
    except Refused as no:
        answer = no.answer
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        fix = "Make room there: df -h ~" if full else ""
        words = f"{error.strerror or type(error).__name__}: {error.filename or home()}"
        answer = {"step": "disk" if full else "files", "error": words + ".", "fix": fix}
    except subprocess.TimeoutExpired:
        answer = {"step": "host", "error": f"the host there did not answer within {TIMEOUT_S} s.", "fix": ""}
    sys.stdout.write(f"\n{request['mark']} {json.dumps(answer)}\n")


if __name__ == "__main__":
    main()
