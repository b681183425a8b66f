"""`self check`: is this file the one that was released?"""

from __future__ import annotations

import hashlib
import os
import re

from ...base import console
from ...base.errors import FAILED, OK, UsageError
from ...base.files import read_small
from ...base.program import program_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..arguments import Parser

EPILOG = """\
examples:
  termsprawlctl self check SHA256SUMS
  termsprawlctl self check termsprawlctl.sha256

FILE is what sha256sum prints: a checksum, or lines of a checksum and a file name.
A checksum shows that the file is whole. It is only as trustworthy as where FILE comes from.
exit status: 0 the checksum matches, 1 it does not, 2 FILE holds none for this file
"""
_LINE = re.compile(r"(?:\\\\)?([0-9a-fA-F]{64})(?: [ *](.+))?")


def configure(parser: Parser) -> None:
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="check", required=True)
    check = actions.add_parser(
        "check",
        help="compare this file with a checksum",
        description="Compare this file with a checksum.",
        epilog=EPILOG,
    )
    check.add_argument("file", metavar="FILE", help="a file with SHA-256 checksums, as sha256sum prints them")


def run(args: Namespace) -> int:
    path = program_file()
    expected = _expected(args.file, os.path.basename(path))
    with open(path, "rb") as stream:
        actual = hashlib.sha256(stream.read()).hexdigest()
    if actual == expected:
        console.out(f"{path}: OK\n")
        return OK
    console.err(f"termsprawlctl: {path} has the SHA-256 {actual}, not {expected}. Download it again.")
    return FAILED


def _expected(path: str, name: str) -> str:
    """The checksum for a file of this name. Raises UsageError."""
    try:
        lines = read_small(path).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}.", "Name a file that sha256sum has written.") from None
    found = [match for match in map(_LINE.fullmatch, lines) if match]
    named = [match for match in found if match[2] and os.path.basename(match[2]) in (name, "termsprawlctl")]
    chosen = named or [match for match in found if match[2] is None]
    if len({match[1].lower() for match in chosen}) != 1:
        raise UsageError(f"{path} holds no single SHA-256 for {name}.", "Name a file that sha256sum has written.")
    return chosen[0][1].lower()
