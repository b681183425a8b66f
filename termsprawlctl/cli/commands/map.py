"""`map`: the canvas of the session's project as a picture."""

from __future__ import annotations

import os

from ...base.errors import UsageError

EPILOG = """\
examples:
  termsprawlctl map
  termsprawlctl map --watch
  termsprawlctl map --svg canvas.svg --screens

Draws terminals with the program that runs in them, notes, groups, and the links along which
agents may send work, all to scale. --watch draws again on every change; Ctrl-C ends it.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--watch", action="store_true", help="draw again whenever something changes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--svg", metavar="FILE", help="write an SVG picture, which every browser shows; - prints it")
    form.add_argument("--json", action="store_true", help="print the boxes and links as JSON, in absolute pixels")
    parser.add_argument("--screens", action="store_true", help="with --svg: draw what the terminals show")
    parser.add_argument(
        "--data", metavar="DIR", help="data directory of the app or host (default: the session file's, else the host's)"
    )


def run(args) -> int:
    from ...view.shell import View
    from ...windows.node_terminal import data_directory
    from ..results import require_session

    session = require_session(args.session)
    if args.svg == "":
        raise UsageError("--svg needs a file.", "Name one, or - for standard output.")
    if args.screens and args.svg is None:
        raise UsageError("--screens goes with --svg.", "Add --svg FILE.")
    # The session may be a running host's, which nobody named.
    data = data_directory(args.data, session, os.environ)
    view = View(session, data, svg_file=args.svg, as_json=args.json, screens=args.screens)
    return view.watch() if args.watch else view.once()
