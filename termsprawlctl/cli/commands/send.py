"""`send`: this file in another machine or container, through a command that leads there."""

from __future__ import annotations

from ...base import console
from ...base.errors import OK

EPILOG = """\
examples:
  termsprawlctl send --via 'ssh box'
  termsprawlctl send --via 'docker exec -i web'
  termsprawlctl send --via 'kubectl exec -i pod --'

The command has to pass standard input and output on to the words after it. The file goes to
~/.cache/termsprawlctl/SHA256/ there, unless it is there already; its path is printed. Python 3.9
has to be there. `install CLIENT --via` and `doctor --via` send it, too.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--via", metavar="COMMAND", required=True, help="the command that leads there")


def run(args) -> int:
    from ...reach.reaching import send

    console.out(send(args.via)[-1] + "\n")
    return OK
