"""`agent run`: give a task to a coding agent from a shell or a script."""

from __future__ import annotations

from ...base import console
from ...base.errors import UsageError

EPILOG = """\
examples:
  termsprawlctl agent run codex "explain the build" --cwd ~/project
  git diff | termsprawlctl agent run claude - --json
  termsprawlctl agent run acp "add a test" -- my-agent --acp

Steps go to standard error, the answer to standard output. ARGS go to the CLI.
exit status: 0 completed, 1 not completed, 2 nothing was started
"""
LIST_EPILOG = """\
examples:
  termsprawlctl agent list --json

An agent of your own that speaks ACP is a file NAME.json in ~/.config/termsprawlctl/agents:
{"acp": ["my-agent", "--acp"], "env": {"NAME": "value"}}
"""
MAX_PROMPT_BYTES = 64 << 20


def configure(parser) -> None:
    parser.epilog = EPILOG
    commands = parser.add_subparsers(dest="action", metavar="run|list", required=True)
    run_parser = commands.add_parser(
        "run", help="run a task to its end", description="Run a task to its end.", epilog=EPILOG
    )
    _configure_run(run_parser)
    list_parser = commands.add_parser(
        "list", help="the agents that can be run, and what of them is installed", description="List the agents."
    )
    list_parser.epilog = LIST_EPILOG
    list_parser.add_argument("--json", action="store_true", help="print JSON")


def _configure_run(parser) -> None:
    from .mcp_agent import configure_agent

    configure_agent(parser)
    parser.add_argument("prompt", metavar="PROMPT", help="the task; - reads it from standard input")
    parser.add_argument("--cwd", metavar="DIR", default="", help="where to work, default the current directory")
    parser.add_argument("--resume", metavar="SESSION", default="", help="continue this session")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON")
    parser.add_argument("--no-activity", action="store_true", help="print the answer only, without the summary")


def run(args) -> int:
    import os

    if args.action == "list":
        from ...agents.listing import show
        from ...agents.runs.scratch import end_abandoned

        end_abandoned()
        return show(as_json=args.json)

    from ...agents.model.arguments import SESSION_ID
    from ...agents.model.settings import from_environment
    from .mcp_agent import apply

    settings = from_environment(dict(os.environ), console.err)
    cwd = os.path.abspath(args.cwd or os.getcwd())
    if not os.path.isdir(cwd):
        raise UsageError(f"--cwd {args.cwd}: there is no such directory.", "Name one that exists.")
    apply(args, settings)
    settings.trace = settings.trace and not args.no_activity
    prompt = args.prompt
    if prompt == "-":
        prompt = console.read_input(MAX_PROMPT_BYTES).decode("utf-8", "replace")
    if not prompt.strip():
        raise UsageError("the prompt is blank.", "Say what the agent should do.")
    if args.resume and not SESSION_ID.fullmatch(args.resume):
        raise UsageError(f"--resume {args.resume}: this is no session id.", "Pass the one that an earlier run named.")
    return _run(args, settings, prompt, cwd)


def _run(args, settings, prompt: str, cwd: str) -> int:
    from ...agents import shell
    from ...agents.clis.cli import Request
    from ...agents.clis.registry import agent_cli
    from ...agents.runs.run import apply_settings

    cli = agent_cli(args.agent, settings.via, settings.acp_command)
    request = Request(prompt, cwd)
    request.model, request.effort, request.session_id = settings.model, settings.effort, args.resume
    apply_settings(request, cli, settings)
    return shell.run(cli, request, settings, as_json=args.json)
