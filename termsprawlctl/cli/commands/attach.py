"""`attach`: a node's terminal in the terminal that this runs in."""

from __future__ import annotations

import os

EPILOG = """\
example:
  termsprawlctl attach n-1

Attaches another client to the node's tmux session, also from inside another tmux. To leave,
press the prefix key and d (usually C-b d); the session keeps running.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("node", metavar="NODE_ID", help="the node, as canvas_list names it")
    parser.add_argument(
        "--data", metavar="DIR", help="data directory of the app or host (default: the session file's, else the host's)"
    )


def run(args) -> int:
    from ...reach.terminal import node_of
    from ...windows.node_terminal import data_directory

    node_of(data_directory(args.data, args.session, os.environ), args.node).attach(os.environ)
    raise AssertionError("attach() does not return")
