"""`guide`: the guides for agents, without any session or server."""

from __future__ import annotations

from ...base import console
from ...base.errors import OK, UsageError
from ...operations import guides

EPILOG = """\
examples:
  termsprawlctl guide
  termsprawlctl guide terminal
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("topic", nargs="?", metavar="TOPIC", default="overview", help="which guide, default overview")


def run(args) -> int:
    try:
        console.out(guides.read(args.topic))
    except ValueError as error:
        raise UsageError(str(error), "Choose one of them.") from None
    return OK
