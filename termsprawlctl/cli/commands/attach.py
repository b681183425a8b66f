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
    from ...windows.node_terminal import NodeTerminal, attach, data_directory

    data = data_directory(args.data, args.session, os.environ)
    if os.path.exists(os.path.join(data, "reach.json")):
        from ...reach.places import Place
        from ...reach.terminal import attach as attach_there

        place = Place.at(data)
        if place is not None:
            attach_there(place, args.node)
    attach(NodeTerminal(data, args.node), os.environ)
    raise AssertionError("attach() does not return")
