"""Run the built file with one fault in it: at a chosen step something fails, or a process is killed.

    python3 -I -S -B -X utf8 faulty.py PLAN CTL ARGUMENTS...

A step is anything that the program does to the world outside, as Python's audit hooks
tell it, and what they do not tell (write, fsync, mkfifo ...). It counts when it concerns
a path below one of the plan's `roots`, or no path at all. PLAN is a JSON file, read anew
with the first step of each thread and whenever one starts another, so that one long-lived
host can be given one fault after the other:

    {"roots": [...],            what belongs to the test
     "kinds": [...] or null,    which steps count; null for all
     "threads": "main",         the first thread; "requests": those of a host that answer calls; "all": counted together
     "serial": 1,               tells a plan from the one before it; steps are counted from its beginning
     "step": 3,                 the number of the step, from 1; 0 for none
     "do": "ENOSPC",            an errno's name: the step fails with it; "lasting" in the plan: and all after it
           "SIGKILL",           a signal's name: this process gets it (`pid` in the plan: that one)
           "rmtree",            the plan's `path` is deleted
     "trace": path,             every step is written there, one a line
     "clock": path}             how many seconds the wall clock is off, as text
"""

import _thread
import collections
import contextlib
import errno
import itertools
import json
import os
import shutil
import signal
import stat
import sys
import threading
import time

_write, _open, _close, _read = os.write, os.open, os.close, os.read
_state = threading.local()
_all = collections.defaultdict(lambda: itertools.count(1))
_plan_path = ""

# Audit event: (kind, which arguments are paths). A path may start in an open directory, which is then another one.
_AUDITED = {
    "os.rename": ("rename", (0, 1), (2, 3)),
    "os.mkdir": ("mkdir", (0,), (2,)),
    "os.remove": ("remove", (0,), (1,)),
    "os.rmdir": ("rmdir", (0,), (1,)),
    "os.chmod": ("chmod", (0,)),
    "os.listdir": ("list", (0,)),
    "os.scandir": ("list", (0,)),
    "subprocess.Popen": ("popen", ()),
    "socket.bind": ("socket", ()),
    "socket.connect": ("socket", ()),
    "fcntl.flock": ("flock", ()),
}
_UNAUDITED = {
    "write": "write",
    "pwrite": "write",
    "ftruncate": "truncate",
    "fsync": "fsync",
    "mkfifo": "mkfifo",
    "pipe": "pipe",
}


class _Silence:
    """While it is held, what this module does itself is no step."""

    def __enter__(self):
        _state.silent = True

    def __exit__(self, *_):
        _state.silent = False


def _read_plan():
    descriptor = _open(_plan_path, os.O_RDONLY)
    try:
        return json.loads(_read(descriptor, 1 << 16))
    finally:
        _close(descriptor)


def _step(kind, paths):
    if getattr(_state, "silent", False):
        return
    with _Silence():
        where = "main" if threading.current_thread() is threading.main_thread() else "requests"
        if not hasattr(_state, "plan"):
            _state.plan, _state.number = _read_plan(), 0
        if kind == "thread":
            _state.plan = _read_plan()
        plan = _state.plan
        if plan.get("threads") == "all":
            where = "all"
        elif where == "requests" and not _answers_a_call():
            return  # the others do the same again and again, whenever they like
        if where != plan.get("threads", "main") or (plan.get("kinds") and kind not in plan["kinds"]):
            return
        texts = [os.fsdecode(path) for path in paths if isinstance(path, (str, bytes, os.PathLike))]
        if len(texts) < len(paths) or (texts and not any(t.startswith(tuple(plan["roots"])) for t in texts)):
            return
        _state.number = next(_all[plan.get("serial")]) if where == "all" else _state.number + 1
        if plan.get("trace"):
            _note(plan["trace"], f"{_state.number} {kind} {' '.join(texts)}\n")
        if _state.number == plan["step"] or (plan.get("lasting") and 0 < plan["step"] <= _state.number):
            _do(plan)


def _answers_a_call() -> bool:
    """Whether this thread was started for one call: host/http/server.py runs it."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "run" and frame.f_code.co_filename.endswith("host/http/server.py"):
            return True
        frame = frame.f_back
    return False


def _note(path, line):
    descriptor = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _write(descriptor, line.encode())
    _close(descriptor)


def _do(plan):
    what = plan["do"]
    if what.startswith("SIG"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(plan.get("pid") or os.getpid(), getattr(signal, what))
    elif what == "rmtree":
        shutil.rmtree(plan["path"], ignore_errors=True)
    elif what == "thread":
        raise RuntimeError("can't start new thread")
    elif what == "MemoryError":
        raise MemoryError
    else:
        number = getattr(errno, what)
        raise OSError(number, os.strerror(number))


def _hook(event, arguments):
    if event == "open":
        path, _, flags = arguments
        if not isinstance(path, int):
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            _step("open-write" if writes else "open-read", (_whole(path, getattr(_state, "folder", None)),))
    elif event in _AUDITED:
        kind, places, *folders = _AUDITED[event]
        paths = [arguments[place] for place in places]
        if folders:
            paths = [_whole(path, arguments[folder]) for path, folder in zip(paths, folders[0])]
        _step(kind, paths)


def _whole(path, folder):
    """A path that starts in an open directory, as one from the root."""
    if folder is None or folder < 0 or not isinstance(path, str):
        return path
    return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)


def _wrap_open():
    def opened(path, flags, mode=0o777, *, dir_fd=None):
        _state.folder = dir_fd  # the audit hook is not told
        try:
            return _open(path, flags, mode, dir_fd=dir_fd)
        finally:
            _state.folder = None

    os.open = opened


def _wrap(name, kind):
    real = getattr(os, name)

    def wrapped(*arguments, **options):
        # A file is full when the disk is; pipes and terminals are something else.
        is_file = name != "write" or stat.S_ISREG(os.fstat(arguments[0]).st_mode)
        _step(kind if is_file else "print", arguments[:1] if name == "mkfifo" else ())
        return real(*arguments, **options)

    setattr(os, name, wrapped)


def _wrap_threads():
    real = threading.Thread.start

    def start(self):
        _step("thread", ())
        real(self)

    threading.Thread.start = start
    real_new = _thread.start_new_thread

    def start_new_thread(*arguments):
        _step("thread", ())
        return real_new(*arguments)

    _thread.start_new_thread = start_new_thread


def _wrap_clock(path):
    real = time.time

    def off_s():
        with _Silence():
            descriptor = _open(path, os.O_RDONLY)
            try:
                return float(_read(descriptor, 100) or b"0")
            finally:
                _close(descriptor)

    time.time = lambda: real() + off_s()


def main():
    global _plan_path
    _plan_path, ctl = sys.argv[1:3]
    sys.argv[:] = sys.argv[2:]
    sys.path.insert(0, ctl)
    for name, kind in _UNAUDITED.items():
        _wrap(name, kind)
    _wrap_threads()
    _wrap_open()
    plan = _read_plan()
    if plan.get("clock"):
        _wrap_clock(plan["clock"])
    sys.addaudithook(_hook)
    from termsprawlctl.cli.parser import main as command_line

    sys.exit(command_line())


if __name__ == "__main__":
    main()
