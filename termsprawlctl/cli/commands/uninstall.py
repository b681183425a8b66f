"""`uninstall`: remove from a client's configuration what `install` added."""

from __future__ import annotations

from .install import add_target, where

EPILOG = """\
examples:
  termsprawlctl uninstall codex                  shows what would be removed
  termsprawlctl uninstall claude --write
  termsprawlctl uninstall claude --server agent:codex --write

Removes only an entry that starts this program; every other byte of the file stays.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    add_target(parser)


def run(args) -> int:
    from ...install import shell
    from ...install.plan import Plan

    output = shell.Output(as_json=args.json, quiet=args.quiet)
    return shell.uninstall(Plan.uninstall(*where(args)), write=args.write, output=output)
