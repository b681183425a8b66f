"""Entry of the package and of the built file.

Every Python since 2.7 has to be able to parse this module, so that one that is
too old gets a sentence instead of a SyntaxError; the rest of the package is
imported only after the check.
"""

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
    _isolate()
    from termsprawlctl.cli import main as command_line

    sys.exit(command_line())


def _isolate():
    # The file's own first line starts Python isolated; `python3 termsprawlctl`
    # does not. PYTHONPATH, user site packages and site hooks could then replace
    # modules of the standard library, so start over without them.
    archive = sys.argv[0]
    if sys.flags.isolated or os.name != "posix" or not sys.executable:
        return
    if os.path.isfile(archive) and not archive.endswith(".py"):
        # After exec(), every test of this condition is false: no loop.
        os.execv(sys.executable, [sys.executable, "-ISB", archive] + sys.argv[1:])


if __name__ == "__main__":
    main()
