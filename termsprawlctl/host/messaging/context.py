"""What linked agents talked about, as one text: the recent turns of each. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ...agents.model.turn import Turn

MAX_CHARS = 100_000


@dataclass(frozen=True)
class Part:
    """The turns of one agent, oldest first, below a heading that says who it is."""

    heading: str
    turns: list[Turn]


def render(parts: list[Part], max_chars: int = MAX_CHARS) -> str:
    """The most recent turns of each part, as many as fit; what a part does not need goes to the next ones."""
    texts: list[str] = []
    for number, part in enumerate(parts):
        left = max_chars - sum(len(text) + 2 for text in texts)
        texts.append(_render_part(part, left // (len(parts) - number)))
    return "\n\n".join(texts)[:max_chars]


def _render_part(part: Part, max_chars: int) -> str:
    left = max_chars - len(part.heading)
    kept: list[str] = []
    for turn in reversed(part.turns):
        text = f"{turn.who}{', ' + turn.time if turn.time else ''}:\n{turn.text}"
        if len(text) + 2 > left:
            if not kept and left > 2:
                kept.append(text[-(left - 2) :])
            break
        kept.append(text)
        left -= len(text) + 2
    return "\n\n".join([part.heading, *reversed(kept)])
