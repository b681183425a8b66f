"""`uninstall`: remove from a client's configuration what `install` added."""

from __future__ import annotations

from .install import add_target, allow_rule, where

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
    found = where(args)
    rule = allow_rule(args, *found)
    plan = Plan.uninstall(*found)
    if rule and args.write:
        # Before the entry, which may be in the same file: what is left then is what install found.
        shell.disallow(rule, output)
        plan = Plan.uninstall(*found)
    return shell.uninstall(plan, write=args.write, output=output)
