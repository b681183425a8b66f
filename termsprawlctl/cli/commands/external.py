"""`external`: a node's terminal in a window of its own."""

from __future__ import annotations

import os
import shlex

from ...base import console, jsontext
from ...base.errors import OK, UsageError

EPILOG = """\
examples:
  termsprawlctl external n-1
  termsprawlctl external n-1 --terminal kitty
  termsprawlctl external n-1 --dry-run
  termsprawlctl external --list

The window is another client of the node's tmux session: it shows and types the same.
Closing it leaves the session running. The terminal is --terminal, else the one in
DIR/agent-tools/preferences.json, else the first known one that is installed:
  {"externalTerminal": {"executable": "kitty", "args": ["--", "{command}"]}}

exit status: 0 started (the output says whether a window appeared), 1 nothing was opened
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("node", nargs="?", metavar="NODE_ID", help="the node, as canvas_list names it")
    parser.add_argument(
        "--data", metavar="DIR", help="data directory of the app or host (default: the session file's, else the host's)"
    )
    terminal = parser.add_argument("--terminal", metavar="NAME", help="the terminal to use, as --list names it")
    terminal.words = _names  # for completion
    parser.add_argument("--dry-run", action="store_true", help="print the command and why it was chosen; start nothing")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--list", action="store_true", help="list the known terminals and where they are")


def _names() -> list[str]:
    from ...windows import emulators

    return [emulator.name for emulator in emulators.known(os.uname().sysname)]


def run(args) -> int:
    from ...base.processes import Interruptible
    from ...reach.terminal import node_of
    from ...windows import external
    from ...windows.node_terminal import data_directory

    if args.list:
        if args.node is not None or args.terminal is not None or args.dry_run:
            raise UsageError("--list goes with --json only.", "Leave out the rest.")
        return _list(as_json=args.json)
    if args.node is None:
        raise UsageError("NODE_ID is missing.", "canvas_list names the nodes; --list shows the known terminals.")
    node = node_of(data_directory(args.data, args.session, os.environ), args.node)
    act = external.plan if args.dry_run else external.open_window
    with Interruptible():  # what has been started and has not come up yet ends, too
        report = act(node, terminal=args.terminal)
    if args.json:
        console.out(jsontext.pretty(report.as_json()) + "\n")
    else:
        console.out("\n".join(_planned(report) if args.dry_run else _done(report)) + "\n")
    return OK


def _planned(report) -> list[str]:
    lines = [shlex.join(report.choice.argv), f"# {report.choice.name}: {report.choice.reason}"]
    if "{launcher}" in report.choice.argv:
        command = shlex.join(report.node.attach_argv())
        lines.append(f"# {{launcher}} is a private file that removes itself and runs: {command}")
    return lines + [f"# note: {note}" for note in report.notes]


def _done(report) -> list[str]:
    lines = [f"{failure.name} {failure.why}: {shlex.join(failure.argv)}" for failure in report.failures]
    client = report.client
    choice = report.choice
    if client:
        lines.append(f"opened {report.node.node_id} in {choice.name}: {client.tty}, {client.width}x{client.height}")
    else:
        lines.append(f"{choice.name} started, but no window has attached yet.")
    lines += [f"  command: {shlex.join(choice.argv)}", f"  chosen: {choice.reason}"]
    if not client:
        lines.append(
            "  It may come up late. If it does not, run the command by hand to see what it says, or try another "
            f"(`termsprawlctl external --list`). {report.node.remedy()}"
        )
    return lines


def _list(*, as_json: bool) -> int:
    from ...windows import emulators, external

    found = emulators.inventory(external.finder(os.environ), system=os.uname().sysname)
    if as_json:
        rows = [{"terminal": row.emulator.name, "path": row.executable, "form": row.form} for row in found]
        console.out(jsontext.pretty(rows) + "\n")
        return OK
    width = max(len(row.emulator.name) for row in found)
    for row in found:
        console.out(f"{row.emulator.name:<{width}}  {row.executable or 'not found'}  {row.form}\n")
    return OK
