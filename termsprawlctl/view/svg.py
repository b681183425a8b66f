"""The picture as SVG that any browser shows: no script, no style sheet, no font to load. Pure."""

from __future__ import annotations

from .model import Box, Picture, bounds, label, state

MARGIN = 40  # pixels around everything
TITLE_BAR = 32
LINE = 22
SCREEN_LINE = 17  # of what a terminal shows
MAX_SHOWN = 1600  # pixels of a side when it is opened; a browser enlarges it without loss
# Pixels for each character of text, an average of usual fonts; longer lines are cut by the box's edge.
CHARACTER = 8.0
_NOTES = {  # fill and edge by the canvas's own names of colours
    "slate": ("#e2e8f0", "#64748b"),
    "amber": ("#fef3c7", "#d97706"),
    "lime": ("#ecfccb", "#65a30d"),
    "pink": ("#fce7f3", "#db2777"),
    "cyan": ("#cffafe", "#0891b2"),
}


_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{:g}" height="{:g}" '
    'viewBox="{:g} {:g} {:g} {:g}" font-family="sans-serif" font-size="14">'
)
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0 0 10 5 0 10z" fill="#0369a1"/></marker></defs>'
)


def draw(drawn: Picture) -> str:
    """A whole SVG document."""
    left, top, right, bottom = bounds(drawn.boxes)
    width, height = right - left + 2 * MARGIN, bottom - top + 2 * MARGIN
    shrink = min(1.0, MAX_SHOWN / max(width, height))
    place = f'x="{left - MARGIN:g}" y="{top - MARGIN:g}" width="{width:g}" height="{height:g}"'
    parts = [
        _HEAD.format(width * shrink, height * shrink, left - MARGIN, top - MARGIN, width, height),
        "<title>Canvas</title>",
        _ARROW,
        f'<rect {place} fill="#f8fafc"/>',
    ]
    for number, box in enumerate(drawn.boxes):
        parts += _box(box, number, drawn.screens.get(box.id))
    places = {box.id: box for box in drawn.boxes}
    parts += [_link(places[link.sender], places[link.recipient]) for link in drawn.links]
    return "\n".join([*parts, "</svg>", ""])


def _box(box: Box, number: int, screen: list[str] | None) -> list[str]:
    hover = " ".join(word for word in (box.kind, box.id, state(box)) if word)
    clip = f"box{number}"
    parts = [
        f"<g><title>{_text(hover)}</title>",
        f'<clipPath id="{clip}">{_rect(box)}</clipPath>',
        _drawn(box, f'clip-path="url(#{clip})"', screen),
        "</g>",
    ]
    return [part for part in parts if part]


def _drawn(box: Box, clip: str, screen: list[str] | None) -> str:
    if box.kind == "group":
        return _group(box, clip)
    return _note(box, clip) if box.kind == "sticky" else _window(box, clip, screen)


def _group(box: Box, clip: str) -> str:
    frame = _rect(box, 'rx="10" fill="#0f172a" fill-opacity="0.03" stroke="#94a3b8" stroke-dasharray="8 6"')
    return f"{frame}<g {clip}>{_line(box, 24, label(box), '#64748b', 'bold')}</g>"


def _note(box: Box, clip: str) -> str:
    fill, edge = _NOTES.get(box.color, _NOTES["amber"])
    room = max(int((box.width - 24) / CHARACTER), 1)
    lines = _wrapped(box.text, room)[: max(int((box.height - 16) / LINE), 1)]
    texts = "".join(_line(box, 26 + LINE * at, line, "#1e293b") for at, line in enumerate(lines))
    frame = _rect(box, f'rx="6" fill="{fill}" stroke="{edge}"')
    return f"{frame}<g {clip}>{texts}</g>"


def _window(box: Box, clip: str, screen: list[str] | None) -> str:
    body, bar, edge = "#ffffff", "#cbd5e1", "#64748b"
    if box.kind == "terminal":
        body, bar, edge = ("#1e293b", "#166534", "#14532d") if not box.ended else ("#334155", "#991b1b", "#7f1d1d")
    dark = box.kind == "terminal"
    title = _line(box, 21, label(box), "#ffffff" if dark else "#0f172a", "bold")
    ink = "#e2e8f0" if dark else "#334155"
    if screen is None:
        lines = [f"{box.kind} {box.id}", state(box)]
        texts = "".join(_line(box, TITLE_BAR + 24 + LINE * at, line, ink) for at, line in enumerate(lines) if line)
    else:
        texts = _screen(box, screen[-max(int((box.height - TITLE_BAR) / SCREEN_LINE) - 1, 1) :], ink)
    head = f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{TITLE_BAR}" fill="{bar}"/>'
    frame = _rect(box, f'rx="6" fill="none" stroke="{edge}"')
    back = _rect(box, f'rx="6" fill="{body}"')
    return f"{back}<g {clip}>{head}{title}{texts}</g>{frame}"


def _screen(box: Box, lines: list[str], ink: str) -> str:
    texts = "".join(_line(box, TITLE_BAR + 20 + SCREEN_LINE * at, line, ink) for at, line in enumerate(lines) if line)
    return f'<g font-family="monospace" font-size="13" xml:space="preserve">{texts}</g>'


def _rect(box: Box, attributes: str = 'rx="6"') -> str:
    return f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" {attributes}/>'


def _line(box: Box, down: float, text: str, ink: str, weight: str = "normal") -> str:
    return f'<text x="{box.x + 12:g}" y="{box.y + down:g}" fill="{ink}" font-weight="{weight}">{_text(text)}</text>'


def _wrapped(text: str, room: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def _link(sender: Box, recipient: Box) -> str:
    """From edge to edge, on the line between the middles."""
    start, end = _middle(sender), _middle(recipient)
    if start == end:
        return ""
    x1, y1 = _edge(sender, start, end)
    x2, y2 = _edge(recipient, end, start)
    hover = f"{_text(label(sender))} may send work to {_text(label(recipient))}"
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#0369a1" stroke-width="2.5" '
        f'marker-end="url(#arrow)"><title>{hover}</title></line>'
    )


def _middle(box: Box) -> tuple[float, float]:
    return box.x + box.width / 2, box.y + box.height / 2


def _edge(box: Box, middle: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Where the line from a box's middle to another point leaves the box."""
    across, down = towards[0] - middle[0], towards[1] - middle[1]
    reach = min(
        box.width / 2 / abs(across) if across else float("inf"),
        box.height / 2 / abs(down) if down else float("inf"),
        1.0,
    )
    return round(middle[0] + across * reach, 1), round(middle[1] + down * reach, 1)


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
