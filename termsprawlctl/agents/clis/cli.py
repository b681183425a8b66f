"""What a coding-agent CLI is to the rest: how it is called, ended and understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..model.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.turn import Turn
    from ..model.types import Json


# Name of the canvas's own MCP server in the configuration that an agent is launched with.
MCP_SERVER = "termsprawl"
# The name in what a CLI prints about a model that its provider does not have.
UNKNOWN_MODEL = re.compile(
    r"model(?:s/| not found: | )[`'\"]?(?!(?:not|is|does|metadata|was)\b)([A-Za-z0-9][\w.:/@-]{0,100}\w)", re.IGNORECASE
)
Ask = Callable[[list[str], float], str]

NETWORK = (
    r"error sending request|connection (refused|reset|dropped|closed|error)|cannot connect|fetch failed"
    r"|ECONNREFUSED|ECONNRESET|getaddrinfo|ENOTFOUND|stream disconnected|unable to connect"
)


class Request:
    """One run as it was asked for, all defaults filled in.

    model, effort, mode and session_id are empty where nobody chose; `arguments` go to the CLI
    as they are; `structured` asks for the event stream; `scratch` is a private directory
    that is removed after the run. `permissions` (one of settings.PERMISSIONS) and `mcp_servers`
    are for agents that are spoken to over ACP.
    """

    __slots__ = (
        "arguments",
        "cwd",
        "effort",
        "mcp_servers",
        "mode",
        "model",
        "permissions",
        "prompt",
        "scratch",
        "session_id",
        "structured",
    )

    def __init__(self, prompt: str, cwd: str) -> None:
        self.prompt = prompt
        self.cwd = cwd
        self.model = ""
        self.effort = ""
        self.mode = ""
        self.permissions = "reject"
        self.mcp_servers: list[Json] = []
        self.session_id = ""
        self.structured = True
        self.arguments: list[str] = []
        self.scratch = ""


class Diagnosis:
    """Why a run failed: a name for programs, what to do for people. `message` replaces the CLI's own if given."""

    __slots__ = ("code", "message", "remedy")

    def __init__(self, code: str, remedy: str, message: str = "") -> None:
        self.code = code
        self.remedy = remedy
        self.message = message


class Surroundings:
    """What an interactive agent is started with: see AgentCli.launch.

    `argv` starts it as the user would; `help_text` is what `--help` prints; `bridge` the argv of
    the MCP server with its tools; `folder` a private directory for `LaunchPlan.files`; `guide` the text
    of its instructions; `environment` what it inherits; `session_id` a UUID that its conversation may
    have as its id, or "".
    """

    __slots__ = ("argv", "bridge", "environment", "folder", "guide", "help_text", "session_id")

    def __init__(
        self,
        argv: list[str],
        help_text: str,
        bridge: list[str],
        folder: str,
        guide: str,
        environment: Mapping[str, str],
        session_id: str = "",
    ) -> None:
        self.session_id = session_id
        self.argv = argv
        self.help_text = help_text
        self.bridge = bridge
        self.folder = folder
        self.guide = guide
        self.environment = environment

    def offers(self, *words: str) -> bool:
        """Whether the help names all these options. A name alone proves nothing: versions differ."""
        return all(word in self.help_text for word in words)

    def first_prompt(self) -> str:
        """For a CLI that takes no instructions: they are its first prompt; it may read no file outside its project."""
        return f"{self.guide}\n\nThis explains the terminal canvas that you run in. Wait for my first task now."


class LaunchPlan:
    """How an interactive agent is started. `mcp`: it is given its tools, not only instructions.

    `argv` is the whole command, `environment` what it needs besides, `files` names and texts that
    have to be in the folder, whose paths argv and environment name already.
    """

    __slots__ = ("argv", "environment", "files", "mcp")

    def __init__(
        self,
        argv: list[str],
        *,
        mcp: bool,
        environment: dict[str, str] | None = None,
        files: dict[str, str] | None = None,
    ) -> None:
        self.argv = argv
        self.mcp = mcp
        self.environment = environment or {}
        self.files = files or {}


class AgentCli:
    """All that is known of one coding-agent CLI. It has no state; its reader has that of one run."""

    name = ""
    executable = ""
    acp: tuple[str, ...] = ()  # the command that speaks the Agent Client Protocol
    conversational = False  # its reader also answers: see acp.AcpReader
    environment: Mapping[str, str] = {}  # variables that it gets besides
    # Either tells that it is logged in: a variable, or a file below the home directory.
    key_variables: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # other names that agent_launch finds the same program under
    takes_effort = False  # it has a setting for how hard the model should think
    install = ""  # what to do when the executable is missing
    login = ""  # what to do when it is not logged in
    # (signal, seconds to wait for the CLI to end) in turn; SIGKILL comes after the last.
    stop_signals: tuple[tuple[str, float], ...] = (("SIGTERM", 2.0), ("SIGTERM", 1.0))
    own_temporary = False  # it leaves things in TMPDIR: give it one that is removed after the run
    unset: tuple[str, ...] = ()  # variables that it must not inherit
    exits_truly = True  # exit status 0 means that it was not stopped from outside
    same_folder = False  # a session can only be continued in the folder of its first run
    permission = ""  # the setting that lets the CLI do more without asking
    # (pattern in the error or on stderr, error code, what to do); the first that matches.
    faults: tuple[tuple[str, str, str], ...] = ()

    def command(self, request: Request) -> list[str]:
        """The argv; the prompt comes on stdin."""
        raise NotImplementedError

    def reader(self, cwd: str) -> Reader:
        """A reader for the CLI's event stream."""
        raise NotImplementedError

    def launch(self, around: Surroundings) -> LaunchPlan | None:  # noqa: ARG002
        """How to start it interactively, with its tools or at least its instructions; None where nothing fits."""
        return None

    def default_model(self, request: Request, environment: dict[str, str], ask: Ask) -> str:  # noqa: ARG002
        """The model to ask for when nobody chose one; empty to let the CLI choose.

        `ask(arguments, limit_s)` returns what the CLI prints when it is called with these
        arguments, "" when it fails, takes longer, or the run is stopped. Blocks meanwhile.
        """
        return ""

    def untouched_home(self, environment: dict[str, str]) -> str:  # noqa: ARG002
        """A directory to lock while this CLI runs for the first time; empty when it has run before."""
        return ""

    def first_run_lost(self, errors: str) -> bool:  # noqa: ARG002
        """Whether a run without any event died of a race with another first run: worth one more try."""
        return False

    def fallback_answer(self, request: Request) -> str:  # noqa: ARG002
        """The answer from elsewhere, when the stream had none."""
        return ""

    def denials(self, run: Reader, errors: str) -> list[str]:  # noqa: ARG002
        """What the CLI was not permitted to do, from the stream and stderr."""
        return run.denied

    def permission_remedy(self, denied: list[str]) -> str:  # noqa: ARG002
        """What would allow what was denied; a sentence without its full stop."""
        return f"To allow it, {self.permission}"

    def complete(self, run: Reader, request: Request, environment: Mapping[str, str]) -> None:
        """Add to the account what the stream did not tell, from what the CLI keeps elsewhere. Never raises."""

    def recent_turns(
        self,
        environment: Mapping[str, str],  # noqa: ARG002
        node_id: str,  # noqa: ARG002
        pids: list[int],  # noqa: ARG002
        folder: str,  # noqa: ARG002
    ) -> list[Turn]:
        """What was said lately in its conversation in a terminal, oldest first; [] where none is certain to be it.

        The terminal is the node's; `pids` run on it, `folder` is its project's, `environment` what they started with.
        """
        return []

    def diagnose(self, text: str) -> Diagnosis | None:
        """What is known about a failure, from its error message and the end of stderr."""
        for pattern, code, remedy in (*self.faults, *self._common_faults()):
            if re.search(pattern, text, re.IGNORECASE):
                named = UNKNOWN_MODEL.search(text) if code == "unknown_model" else None
                return Diagnosis(code, remedy, f"the model {named.group(1)} is not known" if named else "")
        return None

    def _common_faults(self) -> tuple[tuple[str, str, str], ...]:
        return (
            (
                r"\b401\b|unauthorized|unauthenticated|not logged in|invalid api key|authentication_(error|failed)",
                "not_logged_in",
                self.login,
            ),
            (
                r"(session|usage|5.hour|weekly|daily) limit( reached)?|limit (will )?resets?",
                "session_limit",
                "Wait until the limit of the account is reset, or use another account or model.",
            ),
            (r"\b429\b|rate.?limit|quota|too many requests", "rate_limited", "Wait, or choose another model."),
            (
                r"content.?(filter|policy|management)|safety (filter|system|policy)|usage policy|blocked by safety",
                "content_filter",
                "The provider refuses this content: ask in other words, or choose another model.",
            ),
            (
                r"models?\b.{0,80}(not found|does not exist|not supported|not available)|unknown model|invalid model",
                "unknown_model",
                "Choose another model.",
            ),
            (
                r"unexpected argument|unknown (option|argument)|unrecognized (option|argument)|no such (option|flag)",
                "wrong_version",
                f"This version of {self.executable} does not know an option that it was given. {self.install}",
            ),
            (
                NETWORK,
                "network",
                "Check the network, then run it again.",
            ),
            (
                r"\b5\d\d\b|server error|overloaded|high demand|internal",
                "provider_error",
                "Try again later, or another model.",
            ),
        )
