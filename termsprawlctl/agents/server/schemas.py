"""The tools as MCP clients see them. Data only."""

from __future__ import annotations

from ..model.arguments import MAX_WAIT_MS
from ..model.settings import EFFORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import Json


STATUSES = ["queued", "running", "completed", "incomplete", "failed", "timed_out", "cancelled"]

_PATHS = {"type": "array", "items": {"type": "string"}}
_RUN_ID = {"type": "string", "description": "The run id that run returned for a background run."}

RESULT = {
    "type": "object",
    "description": "How the run ended, its answer, and what the agent did.",
    "properties": {
        "status": {"type": "string", "enum": STATUSES},
        "runId": {"type": "string", "description": "Of a background run: for run_status, run_result, run_cancel."},
        "step": {"type": "string", "description": "While it runs: what it does now."},
        "answer": {"type": "string", "description": "The agent's final answer; cut off where status is incomplete."},
        "error": {
            "type": "object",
            "description": "Why it did not complete: code, message, remedy, and the end of stderr and stdout.",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "remedy": {"type": "string"},
                "stderr": {"type": "string"},
                "stdout": {"type": "string"},
            },
        },
        "note": {"type": "string"},
        "exitCode": {"type": "integer", "description": "Of the CLI; negative: the signal that ended it."},
        "sessionId": {"type": "string", "description": "Pass it to run to continue this session."},
        "model": {"type": "string"},
        "cwd": {"type": "string", "description": "Where the agent worked."},
        "durationMs": {"type": "integer"},
        "usage": {"type": "object", "description": "Tokens, and cost_usd where the CLI tells it."},
        "files": {
            "type": "object",
            "description": "Paths (relative to cwd where they lie in it) that the run changed.",
            "properties": {
                "added": _PATHS,
                "modified": _PATHS,
                "deleted": _PATHS,
                "more": {"type": "integer", "description": "How many are not listed."},
                "partial": {"type": "boolean", "description": "True: not all of the folder could be compared."},
            },
        },
        "endedProcesses": {
            "type": "array",
            "description": "What the agent had left running; it was ended with the run, unless that is switched off.",
            "items": {
                "type": "object",
                "properties": {"pid": {"type": "integer"}, "command": {"type": "string"}},
                "required": ["pid", "command"],
            },
        },
        "fullOutput": {"type": "string", "description": "File with the whole, where something was left out here."},
        "activity": {
            "type": "array",
            "description": "What the agent did, in order: commands, edits, searches, thoughts, messages on the way.",
            "items": {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]},
        },
    },
    "required": ["status"],
}

RUNS = {
    "type": "object",
    "properties": {
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "runId": {"type": "string"},
                    "status": {"type": "string", "enum": STATUSES},
                    "step": {"type": "string"},
                    "cwd": {"type": "string"},
                    "elapsedMs": {"type": "integer"},
                },
                "required": ["runId", "status", "elapsedMs"],
            },
        }
    },
    "required": ["runs"],
}


def _hints(*, read_only: bool, destructive: bool, idempotent: bool, open_world: bool) -> Json:
    return {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    }


STATUS_TOOL = {
    "name": "run_status",
    "title": "Status of runs",
    "description": "What runs in the background are doing: status, step, how long. Without runId: all.",
    "inputSchema": {"type": "object", "properties": {"runId": _RUN_ID}, "additionalProperties": False},
    "outputSchema": RUNS,
    "annotations": _hints(read_only=True, destructive=False, idempotent=True, open_world=False),
}

RESULT_TOOL = {
    "name": "run_result",
    "title": "Result of a run",
    "description": (
        "The result of a background run, exactly as run would have returned it. While it is still running "
        "its status says so; waitMs waits for the end first."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "runId": _RUN_ID,
            "waitMs": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_WAIT_MS,
                "description": f"How long to wait for the end, 0 to {MAX_WAIT_MS} ms. Default: 0.",
            },
        },
        "required": ["runId"],
        "additionalProperties": False,
    },
    "outputSchema": RESULT,
    "annotations": _hints(read_only=True, destructive=False, idempotent=True, open_world=False),
}

CANCEL_TOOL = {
    "name": "run_cancel",
    "title": "Cancel a run",
    "description": "End a background run and everything that it started. A run that has ended stays as it is.",
    "inputSchema": {
        "type": "object",
        "properties": {"runId": _RUN_ID},
        "required": ["runId"],
        "additionalProperties": False,
    },
    "outputSchema": RUNS,
    "annotations": _hints(read_only=False, destructive=True, idempotent=True, open_world=False),
}


def tools(agent: str, *, takes_effort: bool) -> list[Json]:
    """The tools of a server for this agent."""
    return [_run_tool(agent, takes_effort=takes_effort), STATUS_TOOL, RESULT_TOOL, CANCEL_TOOL]


def _run_tool(agent: str, *, takes_effort: bool) -> Json:
    effort = "How hard the model should think." if takes_effort else f"Ignored: {agent} has no such setting."
    return {
        "name": "run",
        "title": f"Run {agent}",
        "description": (
            f"Give a task to the coding agent {agent} and wait for its answer. It can read and change files in cwd "
            "and run commands there, as its own configuration permits. The result is its final answer, then a "
            "summary of what it did. What it leaves running is ended with it. A run may take many minutes: pass "
            "background true to get a run id at once, and follow it up with run_status and run_result."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "The task, in full: the agent knows nothing else."},
                "cwd": {
                    "type": "string",
                    "description": "Absolute directory to work in. Default: as configured, else a temporary one.",
                },
                "model": {"type": "string", "description": f"Model, as {agent} names it. Default: as configured."},
                "effort": {"type": "string", "enum": list(EFFORTS), "description": effort},
                "sessionId": {
                    "type": "string",
                    "description": "Continue this session; an earlier run named it. Default: a new session.",
                },
                "background": {
                    "type": "boolean",
                    "description": "Return a run id at once instead of waiting for the end. Default: false.",
                },
            },
            "required": ["prompt"],
            "additionalProperties": False,
        },
        "outputSchema": RESULT,
        "annotations": _hints(read_only=False, destructive=True, idempotent=False, open_world=True),
    }
