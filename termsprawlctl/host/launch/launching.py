"""What a node finds when it starts: its launch folder and its environment."""

from __future__ import annotations

import os
import shlex

from ...base.files import private_directory, write_atomically
from ...base.layout import DataPaths
from ...operations import guides

# tmux takes a command of 16 KiB: the rest of it may have a folder's path of 4 KiB.
MAX_WORDS_BYTES = 8 << 10
MAX_VALUE_BYTES = 1 << 10


def skill(topic: str, summary: str) -> str:
    """A guide as a skill file: front matter that agents pick skills by, then the text."""
    return f"---\nname: termsprawl-{topic}\ndescription: {summary}\n---\n\n{guides.read(topic)}"


def prepare_folder(paths: DataPaths, node_id: str) -> str:
    """Write the node's guides; returns the launch folder. Raises OSError."""
    folder = private_directory(os.path.join(paths.launch, node_id))
    write_atomically(os.path.join(folder, "termsprawl-system.md"), guides.read("overview").encode())
    for topic, summary in guides.TOPICS.items():
        place = private_directory(os.path.join(folder, "skills", f"termsprawl-{topic}"))
        write_atomically(os.path.join(place, "SKILL.md"), skill(topic, summary).encode())
    return folder


def environment(paths: DataPaths, program: str, node_id: str, project: str) -> dict[str, str]:
    """What the node's program is told of its session: paths and ids, never the token."""
    return {
        "TERMSPRAWL_SESSION_FILE": paths.session(node_id),
        "TERMSPRAWL_CTL": program,
        "TERMSPRAWL_SYSTEM_PROMPT_FILE": os.path.join(paths.launch, node_id, "termsprawl-system.md"),
        "TERMSPRAWL_NODE_ID": node_id,
        "TERMSPRAWL_PROJECT_ID": project,
    }


def fit_into_command(folder: str, environment: dict[str, str], argv: list[str]) -> tuple[dict[str, str], list[str]]:
    """(environment, argv) that tmux can take in one command.

    Where they are too large for that (a PATH of many KB, a guide as an argument), what is
    large comes from a private script in the node's launch folder, which then becomes the
    program. Raises OSError.
    """
    words = [*argv, *(f"-e{name}={value}" for name, value in environment.items())]
    if sum(len(os.fsencode(word)) + 1 for word in words) <= MAX_WORDS_BYTES:
        return environment, argv
    small = {name: value for name, value in environment.items() if len(os.fsencode(value)) <= MAX_VALUE_BYTES}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items() if name not in small]
    script = os.path.join(folder, "start.sh")
    write_atomically(script, os.fsencode("\n".join([*lines, f"exec {shlex.join(argv)}", ""])))
    return small, ["/bin/sh", script]
