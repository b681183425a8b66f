"""What a node finds when it starts: its launch folder and its environment."""

from __future__ import annotations

import os

from ..files import private_directory, write_atomically
from ..layout import DataPaths
from ..session import guides


def skill(topic: str, summary: str) -> str:
    """A guide as a skill file: front matter that agents pick skills by, then the text."""
    return f"---\nname: termsprawl-{topic}\ndescription: {summary}\n---\n\n{guides.read(topic)}"


def prepare_folder(paths: DataPaths, node_id: str) -> str:
    """Write the node's guides; returns the launch folder. Raises OSError."""
    folder = private_directory(os.path.join(paths.launch, node_id))
    write_atomically(os.path.join(folder, "termsprawl-system.md"), guides.read("overview").encode())
    for topic, summary in guides.TOPICS:
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
