"""`launch`: start a coding agent in a terminal of the embedded host."""

from __future__ import annotations

import os

from ...base import console, jsontext
from ...base.console import Notice
from ...base.errors import FAILED, OK, CtlError
from ...base.layout import DataPaths, default_data_directory, is_id
from ...operations.table import AGENTS

EPILOG = """\
examples:
  termsprawlctl launch codex
  termsprawlctl launch claude --project ~/src/app --attach

Starts the embedded host where none runs. The agent gets the operations of
`termsprawlctl tools` as MCP tools where it can take them, else instructions.
`termsprawlctl host status` lists what runs; `termsprawlctl external NODE` shows it.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("agent", choices=AGENTS, metavar="AGENT", help=f"one of {', '.join(AGENTS)}")
    parser.add_argument("--project", metavar="DIR", help="project folder (default: the one around this folder)")
    parser.add_argument("--data", metavar="DIR", help="data directory of the host")
    parser.add_argument("--new", action="store_true", help="make a project of this folder, even inside another one")
    parser.add_argument("--json", action="store_true", help="print the node and its session as JSON")
    parser.add_argument("--attach", action="store_true", help="show the agent in this terminal at once")


def run(args) -> int:
    from ...app import transport
    from ...host.daemon.control import start
    from ...windows.node_terminal import NodeTerminal
    from ..session import project_folder

    paths = DataPaths(args.data or default_data_directory(os.environ))
    project = project_folder(args.project, new=args.new)
    with Notice(f"starting {args.agent}"):
        session = start(paths, project)
        result = transport.call(session, "agent_launch", {"agent": args.agent})
    if not result["ok"]:
        console.err(f"termsprawlctl: {result['error']}")
        return FAILED
    value = result.get("value")
    node_id = value.get("nodeId") if isinstance(value, dict) else None
    if not isinstance(node_id, str) or not is_id(node_id):
        raise CtlError("the host started an agent, but named no node for it.", "See termsprawlctl host status.")
    if args.attach:
        NodeTerminal(paths.root, node_id).attach(os.environ)  # becomes tmux; does not return
    if args.json:
        facts = {"nodeId": node_id, "agent": args.agent, "sessionFile": session, "data": paths.root}
        console.out(jsontext.pretty(facts) + "\n")
        return OK
    console.out(node_id + "\n")
    console.err(f"termsprawlctl: {args.agent} runs. To see it: termsprawlctl attach {node_id} --data {paths.root}")
    return OK
