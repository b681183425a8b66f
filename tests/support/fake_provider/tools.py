"""From an intention of the script to a call of a tool that the CLI offers."""

from __future__ import annotations

import json
import os
import shlex

from .conversation import FREE_FORM

SHELLS = ("exec_command", "shell_command", "shell", "bash", "Bash", "run_shell_command")
WRITERS = ("write", "Write", "write_file", "create")
EDITORS = ("edit", "Edit", "replace")
READERS = ("read", "Read", "read_file")
SEARCHERS = ("grep", "Grep", "grep_search", "search_file_content")
FINDERS = ("glob", "Glob")
# Tool -> (name of its list, then the names of the keys that hold a step's text).
PLANNERS = {
    "update_plan": ("plan", "step"),
    "todowrite": ("todos", "content"),
    "TodoWrite": ("todos", "content", "activeForm"),
    "write_todos": ("todos", "description"),
}


def call(intention: dict, tools: dict[str, list[str]], directory: str | None):
    """(tool name or (namespace, name), arguments) of an intention; None when this CLI has no such tool.

    `tools`: the names on offer with their parameters; `directory`: where the CLI works.
    """
    if "mcp" in intention:
        return mcp_tool(intention["mcp"], intention["tool"], tools), intention.get("args", {})
    if "do" not in intention:
        name = intention["name"]
        name = (intention["namespace"], name) if "namespace" in intention else name
        return name, intention.get("input", intention.get("args", {}))
    what = intention["do"]
    if what == "plan":
        return _plan(intention, tools)
    if "exec" in tools and not any(name in tools for name in SHELLS):
        return "exec", _as_script(intention)
    if what in ("create", "edit", "delete") and "apply_patch" in tools:
        if tools["apply_patch"] == [FREE_FORM]:
            return "apply_patch", _patch(intention)
        return "apply_patch", {"patchText": _patch(intention, directory)}
    return _own_tool(intention, tools, directory) or _shell(intention, tools)


def mcp_tool(server: str, tool: str, tools: dict[str, list[str]]):
    """The name under which a CLI offers a tool of an MCP server."""
    if f"mcp__{server}__{tool}" in tools:
        return f"mcp__{server}__{tool}"
    for name in tools:
        if isinstance(name, str) and name.endswith(tool) and server in name:
            return name
    # Not listed by name: codex has tools in a namespace of their server, claude finds them when called.
    return (f"mcp__{server}", tool) if _is_codex(tools) else f"mcp__{server}__{tool}"


def _is_codex(tools: dict) -> bool:
    return not {"exec_command", "exec", "shell_command", "apply_patch"}.isdisjoint(tools) and "write" not in tools


def _own_tool(intention: dict, tools: dict, directory: str | None):
    """A tool made for just this, with the parameters that it knows."""
    path = intention.get("path")
    full = os.path.join(directory, path) if directory and path else path
    files = {"filePath": full, "file_path": full, "absolute_path": full}
    wanted = {
        "create": (
            WRITERS,
            {**files, "path": full, "content": intention.get("content"), "file_text": intention.get("content")},
        ),
        "edit": (
            EDITORS,
            {
                **files,
                "oldString": intention.get("old"),
                "newString": intention.get("new"),
                "old_string": intention.get("old"),
                "new_string": intention.get("new"),
                "instruction": "edit",
                "expected_replacements": 1,
            },
        ),
        "read": (READERS, files),
        "search": (SEARCHERS, {"pattern": intention.get("pattern")}),
        "find": (FINDERS, {"pattern": intention.get("pattern")}),
    }
    names, values = wanted.get(intention["do"], ((), {}))
    for name in names:
        if name in tools:
            return name, {key: value for key, value in values.items() if key in tools[name]}
    return None


def _shell(intention: dict, tools: dict):
    command = _as_command(intention)
    wait_ms = intention.get("yield_time_ms", 10000)
    values = {"cmd": command, "command": command, "description": "run a command", "yield_time_ms": wait_ms}
    for name in SHELLS:
        if name == "shell" and name in tools:
            return name, {"command": ["bash", "-lc", command]}
        if name in tools:
            return name, {key: value for key, value in values.items() if key in tools[name]}
    return None


def _plan(intention: dict, tools: dict):
    for name, (key, *texts) in PLANNERS.items():
        if name in tools:
            steps = []
            for number, text in enumerate(intention["items"]):
                status = "completed" if number < intention.get("done", 0) else "pending"
                step = {**dict.fromkeys(texts, text), "status": status}
                steps.append({**step, "priority": "medium"} if name == "todowrite" else step)
            return name, {key: steps}
    return None


def _as_script(intention: dict) -> str:
    """For a CLI whose one tool takes JavaScript that calls the others."""
    if intention["do"] in ("create", "edit", "delete"):
        return f"text(await tools.apply_patch({json.dumps(_patch(intention))}));"
    options = {"cmd": _as_command(intention), "yield_time_ms": intention.get("yield_time_ms", 10000)}
    return f"text(await tools.exec_command({json.dumps(options)}));"


def _as_command(intention: dict) -> str:
    quote = shlex.quote
    what = intention["do"]
    if what == "run":
        return intention["command"]
    if what == "search":
        return f"grep -rn -- {quote(intention['pattern'])} ."
    if what == "find":
        return f"find . -name {quote(intention['pattern'])}"
    if what == "read":
        return f"cat -- {quote(intention['path'])}"
    if what == "delete":
        return f"rm -- {quote(intention['path'])}"
    return f"apply_patch <<'END_OF_PATCH'\n{_patch(intention)}\nEND_OF_PATCH"


def _patch(intention: dict, directory: str | None = None) -> str:
    """The intention in the patch format of codex; paths are absolute where a directory is given."""
    path = intention["path"] if directory is None else os.path.join(directory, intention["path"])

    def lines(mark: str, text: str) -> str:
        return "".join(f"{mark}{line}\n" for line in text.splitlines())

    if intention["do"] == "create":
        body = f"*** Add File: {path}\n{lines('+', intention['content'])}"
    elif intention["do"] == "edit":
        body = f"*** Update File: {path}\n@@\n{lines('-', intention['old'])}{lines('+', intention['new'])}"
    else:
        body = f"*** Delete File: {path}\n"
    return f"*** Begin Patch\n{body}*** End Patch"
