"""`agent run`: give a task to a coding agent from a shell or a script."""

from __future__ import annotations

from ...base import console
from ...base.errors import UsageError

EPILOG = """\
examples:
  termsprawlctl agent run codex "explain the build" --cwd ~/project
  git diff | termsprawlctl agent run claude - --json
  termsprawlctl agent run codex "add a test" -- -s workspace-write

Steps are shown on standard error as they happen, the answer on standard output. PROMPT `-`
reads it from standard input. The CLI works in the current directory unless --cwd says
otherwise; ARGS after `--` are passed on to it. The variables AGENT_CLI_MCP_MODEL, _EFFORT,
_TIMEOUT_MS, _STRUCTURED and _TRACE hold as for `mcp agent`.
exit status: 0 the agent completed the task, 1 it did not, 2 nothing was started
"""
MAX_PROMPT_BYTES = 64 << 20


def configure(parser) -> None:
    parser.epilog = EPILOG
    commands = parser.add_subparsers(dest="action", metavar="run", required=True)
    run_parser = commands.add_parser(
        "run", help="run a task to its end", description="Run a task to its end.", epilog=EPILOG
    )
    _configure_run(run_parser)


def _configure_run(parser) -> None:
    from ...agents.clis.registry import NAMES
    from ...agents.model.settings import EFFORTS
    from .mcp_agent import IDLE_HELP, idle_seconds, seconds

    parser.passes_on = "ARGS"
    parser.add_argument("agent", choices=list(NAMES), metavar="AGENT", help="|".join(NAMES))
    parser.add_argument("prompt", metavar="PROMPT", help="the task; - reads it from standard input")
    parser.add_argument("--cwd", metavar="DIR", default="", help="where to work, default the current directory")
    parser.add_argument("--model", metavar="M", default="", help="model, as the CLI names it")
    parser.add_argument("--effort", choices=EFFORTS, default="", help="how hard the model should think")
    parser.add_argument("--resume", metavar="SESSION", default="", help="continue this session")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="longest time of the run")
    parser.add_argument("--idle-timeout", metavar="SECONDS", type=idle_seconds, help=IDLE_HELP)
    parser.add_argument(
        "--keep-background", action="store_true", help="let processes that the agent leaves running go on after it"
    )
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON")
    parser.add_argument("--no-activity", action="store_true", help="print the answer only, without the summary")


def run(args) -> int:
    import os

    from ...agents.model.arguments import SESSION_ID
    from ...agents.model.settings import from_environment
    from .mcp_agent import apply

    settings = from_environment(dict(os.environ), console.err)
    cwd = os.path.abspath(args.cwd or os.getcwd())
    if not os.path.isdir(cwd):
        raise UsageError(f"--cwd {args.cwd}: there is no such directory.")
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

    request = Request(prompt, cwd)
    request.model, request.effort, request.session_id = settings.model, settings.effort, args.resume
    request.arguments, request.structured = settings.arguments, settings.structured
    return shell.run(agent_cli(args.agent), request, settings, as_json=args.json)
