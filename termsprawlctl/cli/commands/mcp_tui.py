"""`mcp tui`: one shared live TUI as two MCP tools."""

from __future__ import annotations

EPILOG = """\
example:
  termsprawlctl mcp tui --endpoint /tmp/.../endpoint.json

The path is shown where the TUI is shared; it is new for each share unless that has a name. A path that
cannot be used ends this at once, with exit status 2; with --later one where nothing is shared yet does not.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "--endpoint", metavar="PATH", required=True, help="the endpoint.json that the TUI shows when it is shared"
    )
    parser.add_argument(
        "--later", action="store_true", help="the share may begin later; until then it is target_unavailable"
    )


def run(args) -> int:
    from ...mcp.server import serve
    from ...share.adapter import OPTIONS, TuiProvider

    return serve(TuiProvider(args.endpoint, later=args.later), OPTIONS)
