"""`mcp agent`: a coding-agent CLI behind MCP tools."""

from __future__ import annotations

EPILOG = """\
examples:
  termsprawlctl mcp agent codex --cwd /path/to/project
  termsprawlctl mcp agent codex -- -s workspace-write
  termsprawlctl mcp agent acp --permissions allow-edits -- my-agent --acp

The CLI has to be installed and logged in. ARGS are passed on to it; for acp
(any agent that speaks ACP) they are its command. AGENT_CLI_MCP_MODEL, _EFFORT,
_CWD, _TIMEOUT_MS, _HEARTBEAT_MS, _STRUCTURED and _TRACE are defaults.
"""
PERMISSIONS_HELP = "over ACP: reject (default), allow-edits, allow, or ask you"
AGENT_HELP = "codex|opencode|claude|gemini|copilot|qwen|acp, or one of yours"


def configure(parser) -> None:
    from ...agents.model.settings import MAX_RUNS

    parser.epilog = EPILOG
    configure_agent(parser)
    parser.add_argument("--cwd", metavar="DIR", default="", help="where runs work that do not say so")
    parser.add_argument("--max-runs", metavar="N", type=_count, default=MAX_RUNS, help=f"at once, default {MAX_RUNS}")
    parser.add_argument("--result-bytes", metavar="N", type=_result_bytes, help="longest result, default 11000")


def configure_agent(parser) -> None:
    """The arguments that name an agent and say how it works."""
    from ...agents.clis.registry import VIA, names
    from ...agents.model.settings import EFFORTS, PERMISSIONS

    parser.passes_on = "ARGS"
    parser.add_argument("agent", choices=names(), metavar="AGENT", help=AGENT_HELP)
    parser.add_argument("--model", metavar="M", default="", help="model, as the CLI names it")
    parser.add_argument("--effort", choices=EFFORTS, metavar="E", default="", help="minimal, low, medium or high")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="longest time of one run, in seconds")
    parser.add_argument("--idle-timeout", metavar="S", type=idle_seconds, help="of silence; default 600, 0 never")
    parser.add_argument("--keep-background", action="store_true", help="what the agent leaves running goes on")
    parser.add_argument("--via", choices=VIA, default="", help="speak ACP with it")
    parser.add_argument("--permissions", choices=PERMISSIONS, metavar="P", default="", help=PERMISSIONS_HELP)
    parser.add_argument("--ask-timeout", metavar="S", type=seconds, help="a question waits so long; default 300")
    parser.add_argument("--mode", metavar="MODE", default="", help="over ACP: one of the agent's modes")
    parser.add_argument("--mcp-config", metavar="FILE", default="", help="over ACP: MCP servers for the agent")


def run(args) -> int:
    import os

    from ...agents.model.settings import from_environment
    from ...agents.runs.scratch import end_abandoned
    from ...agents.server.provider import OPTIONS, AgentProvider
    from ...base.log import log
    from ...mcp.server import serve

    settings = from_environment(dict(os.environ), log)
    apply(args, settings)
    settings.max_runs = args.max_runs
    if args.result_bytes:
        settings.result_bytes = args.result_bytes
    end_abandoned()
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
    _apply_acp(args, settings)


def _apply_acp(args, settings) -> None:
    """What holds for agents that are spoken to over ACP. Raises UsageError where the agent is none of them."""
    from ...agents.clis.registry import ANY, NAMES, agent_cli
    from ...base.errors import UsageError

    settings.via = args.via
    if args.agent == ANY:
        settings.acp_command, settings.arguments = settings.arguments, []
    if args.agent in NAMES and not args.via:
        given = [flag for flag in ("permissions", "ask_timeout", "mode", "mcp_config") if getattr(args, flag)]
        if given:
            flag = given[0].replace("_", "-")
            raise UsageError(
                f"--{flag} is for agents over ACP only.",
                f"Add --via acp, or {agent_cli(args.agent).permission}." if flag == "permissions" else "Add --via acp.",
            )
        return
    agent_cli(args.agent, args.via, settings.acp_command)
    settings.mode = args.mode
    settings.permissions = args.permissions or settings.permissions
    settings.ask_s = args.ask_timeout or settings.ask_s
    if args.mcp_config:
        settings.mcp_servers = _mcp_servers(args.mcp_config)


def _mcp_servers(path: str) -> list[dict]:
    from ...agents.clis.acp import mcp_servers
    from ...base.errors import UsageError
    from ...base.files import read_small

    shape = '{"mcpServers": {"NAME": {"command": "...", "args": []}}}'
    try:
        return mcp_servers(read_small(path).decode("utf-8", "replace"))
    except (OSError, ValueError) as problem:
        reason = (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)
        raise UsageError(f"--mcp-config {path}: {reason}.", f"It should look like {shape}.") from None


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
