"""Entry of the package and of the built file.

Every Python since 2.7 has to be able to parse this module, so that one that is
too old gets a sentence instead of a SyntaxError; the rest of the package is
imported only after the check.
"""

import gc
import os
import sys

OLDEST_PYTHON = (3, 9)


def main():
    """Run the command line; never returns."""
    if sys.version_info < OLDEST_PYTHON:
        sys.stderr.write(
            "termsprawlctl: needs Python 3.9 or newer, but this is Python %d.%d. "
            "Put a newer python3 first on PATH.\n" % sys.version_info[:2]
        )
        sys.exit(2)
    # What is loaded now stays loaded; looking through it for garbage is a twentieth of a
    # quick call. cli.py switches collection on for all commands that live longer.
    gc.disable()
    # Until the command line can catch Ctrl-C it ends the process as any program: imports
    # that are interrupted print tracebacks. Where the starter ignores SIGINT it stays
    # ignored, unless that was the file's own first lines.
    import _signal  # type: ignore[import-not-found]

    listens = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler or "sigint" in sys._xoptions
    if listens:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _isolate()
    try:
        from .cli.parser import main as command_line
    except ImportError:
        _require_zlib()
        raise

    try:
        if listens:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        status = command_line()
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def _require_zlib():
    # Everything but this module lies compressed in the file.
    try:
        import zlib  # noqa: F401
    except ImportError:
        sys.stderr.write(
            "termsprawlctl: needs a Python with zlib, but %s has none. "
            "Put one that has it first on PATH.\n" % sys.executable
        )
        sys.exit(2)


def _isolate():
    # The file's own first line starts Python isolated and in UTF-8; `python3
    # termsprawlctl` does not. PYTHONPATH, user site packages and site hooks could then
    # replace modules of the standard library, so start over without them.
    archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.flags.isolated or os.name != "posix" or not sys.executable:
        return
    if os.path.isfile(archive):  # not a folder: this is the built file, not an installed package
        # After exec(), Python is isolated: no loop.
        os.execv(sys.executable, [sys.executable, "-ISBXutf8", archive] + sys.argv[1:])


if __name__ == "__main__":
    main()
