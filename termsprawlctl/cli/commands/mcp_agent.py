"""`mcp agent`: a coding-agent CLI behind MCP tools."""

from __future__ import annotations

EPILOG = """\
examples:
  termsprawlctl mcp agent codex --cwd /path/to/project
  termsprawlctl mcp agent opencode --model provider/model
  termsprawlctl mcp agent codex -- -s workspace-write

The CLI has to be installed and logged in; what it may do without asking is decided by its
own configuration, or by ARGS after `--`, which are passed on to it. What a call says goes
before these flags, and these before the variables AGENT_CLI_MCP_MODEL, _EFFORT, _CWD,
_TIMEOUT_MS (one run at most, default 1800000), _HEARTBEAT_MS (10000), _STRUCTURED (0: plain
output instead of the event stream) and _TRACE (0: the answer without the summary).
"""
IDLE_HELP = "end a run that prints nothing for so long while no command of the agent runs; default 600, 0 never"


def configure(parser) -> None:
    from ...agents.clis.registry import NAMES
    from ...agents.model.settings import EFFORTS, MAX_RUNS

    parser.epilog = EPILOG
    parser.passes_on = "ARGS"
    parser.add_argument("agent", choices=list(NAMES), metavar="AGENT", help="|".join(NAMES))
    parser.add_argument("--cwd", metavar="DIR", default="", help="where runs work that do not say so")
    parser.add_argument("--model", metavar="M", default="", help="model of runs that name none")
    parser.add_argument("--effort", choices=EFFORTS, default="", help="effort of runs that name none")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="longest time of one run")
    parser.add_argument("--idle-timeout", metavar="SECONDS", type=idle_seconds, help=IDLE_HELP)
    parser.add_argument(
        "--keep-background", action="store_true", help="let processes that the agent leaves running go on after it"
    )
    parser.add_argument(
        "--max-runs", metavar="N", type=_count, default=MAX_RUNS, help=f"runs at once, others wait (default {MAX_RUNS})"
    )
    parser.add_argument(
        "--result-bytes",
        metavar="N",
        type=_result_bytes,
        help="size above which a result is shortened and kept whole in a file (default 11000, what clients show)",
    )


def run(args) -> int:
    import os

    from ...agents.model.settings import from_environment
    from ...agents.server.provider import OPTIONS, AgentProvider
    from ...base.log import log
    from ...mcp.server import serve

    settings = from_environment(dict(os.environ), log)
    apply(args, settings)
    settings.max_runs = args.max_runs
    if args.result_bytes:
        settings.result_bytes = args.result_bytes
    return serve(AgentProvider(args.agent, settings), OPTIONS)


def apply(args, settings) -> None:
    """Put the launch flags that are given over the settings."""
    import os

    settings.model = args.model or settings.model
    settings.effort = args.effort or settings.effort
    settings.cwd = os.path.abspath(args.cwd) if args.cwd.strip() else settings.cwd
    settings.timeout_s = args.timeout or settings.timeout_s
    settings.idle_s = settings.idle_s if args.idle_timeout is None else args.idle_timeout
    settings.keep_background = args.keep_background
    settings.arguments = list(getattr(args, "passed_on", None) or [])


def seconds(text: str) -> float:
    """A time-out in an argument. Raises ValueError."""
    from ...agents.model.settings import MAX_MS

    value = float(text)
    if not 0 < value <= MAX_MS / 1000:
        raise ValueError(text)
    return value


def idle_seconds(text: str) -> float:
    """The same for a time that 0 switches off. Raises ValueError."""
    return 0.0 if float(text) == 0 else seconds(text)


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 64:
        raise ValueError(text)
    return value


def _result_bytes(text: str) -> int:
    value = int(text)
    if not 2000 <= value <= 10_000_000:
        raise ValueError(text)
    return value


idle_seconds.__name__ = "number of seconds"
seconds.__name__ = "number of seconds"
_count.__name__ = "number from 1 to 64"
_result_bytes.__name__ = "number from 2000 to 10000000"
