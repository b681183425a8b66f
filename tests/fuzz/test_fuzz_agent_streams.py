"""What a coding-agent CLI may print, however broken: every run ends with a result of the schema, of bounded size."""

from __future__ import annotations

import copy
import functools
import gc
import json
import re
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import corpus, hostile
from support.agent_results import check_ended

from termsprawlctl.agents.clis.registry import NAMES, agent_cli
from termsprawlctl.agents.model.settings import Settings
from termsprawlctl.agents.model.steps import summary
from termsprawlctl.agents.model.text import MAX_LABEL
from termsprawlctl.agents.runs.render import full_text, structure_of, text_of, too_long
from termsprawlctl.agents.runs.run import Request, Result
from termsprawlctl.agents.runs.status import Ending, judge
from termsprawlctl.agents.runs.stream import Lines
from termsprawlctl.base import text

STREAMS = Path(__file__).resolve().parent.parent / "data" / "agent_streams"
MARK = "0123456789abcdef"
# Terminals act on these; tab and line end are for where texts have several lines.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
CONTROLS_OR_LINE_ENDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Fields whose words say what an event is.
KINDS = ("type", "subtype", "tool", "tool_name", "name", "role")


@functools.cache
def recorded(cli: str) -> list[list[bytes]]:
    """Each recorded stream of a CLI as its lines."""
    return [path.read_bytes().split(b"\n") for path in sorted((STREAMS / cli).glob("*.jsonl"))]


@functools.cache
def events(cli: str) -> list[dict]:
    """All recorded events of a CLI; of the same shape only one."""
    found = {}
    for lines in recorded(cli):
        for line in lines:
            event = loaded(line)
            if event:
                found.setdefault(shape(event), event)
    return list(found.values())


def loaded(line: bytes) -> dict:
    """The event in a line; an empty one where it is none."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def shape(value: object, key: str = "") -> str:
    """The names and types in an event, with the words that say what kind of event it is."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{shape(value[name], name)}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return f"[{shape(value[0]) if value else ''}]"
    return str(value) if key in KINDS else type(value).__name__


# --- strategies -----------------------------------------------------------------------------

clis = st.sampled_from(sorted(NAMES))


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The path of every value inside a value."""
    found = [path] if path else []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += places(inner, (*path, key))
    return found


long_texts = st.builds(lambda text, times: text * times, hostile.any_text, st.sampled_from([100, 3000, 20_000]))
anything = (
    hostile.json_values | long_texts | st.sampled_from([10**300, -(10**300), 1e308, "<task_result>", "[API Error: {"])
)


@st.composite
def wounded(draw, event: dict) -> bytes:
    """An event as a line, with some values taken out, swapped for others or for anything."""
    event = copy.deepcopy(event)
    for _ in range(draw(st.integers(1, 3))):
        paths = places(event)
        if not paths:
            break
        *way, last = draw(st.sampled_from(paths))
        holder = functools.reduce(lambda inner, key: inner[key], way, event)
        what = draw(st.sampled_from(["anything", "anything", "delete", "wrap", "other"]))
        if what == "delete":
            del holder[last]
        elif what == "wrap":
            holder[last] = [holder[last]]
        elif what == "other":
            other = functools.reduce(lambda inner, key: inner[key], draw(st.sampled_from(paths)), event)
            holder[last] = copy.deepcopy(other)
        else:
            holder[last] = draw(anything)
    return hostile.dump(event).encode()


@st.composite
def new_lines(draw) -> bytes:
    """A line that does not belong there."""
    what = draw(st.sampled_from(["foreign", "binary", "json"]))
    if what == "foreign":
        return hostile.dump(draw(st.sampled_from(events(draw(clis))))).encode()
    return draw(hostile.binary | hostile.sharp_bytes if what == "binary" else hostile.json_bytes)


@st.composite
def hurt_lines(draw, line: bytes) -> bytes:
    """The line with other bytes, or with other values in its event."""
    event = loaded(line)
    wound = bool(event) and draw(st.integers(0, 2))
    return draw(wounded(event) if wound else hostile.damaged(st.just(line)))


@st.composite
def streams(draw) -> tuple[str, bytes]:
    """(cli, output): a recorded run with lines left out, doubled, swapped, wounded, or of another CLI."""
    cli = draw(clis)
    lines = list(draw(st.sampled_from(recorded(cli))))
    for _ in range(draw(st.integers(0, 5))):
        at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        what = draw(st.sampled_from(["drop", "double", "swap", "hurt", "hurt", "hurt", "new"]))
        if what == "drop" and len(lines) > 1:
            del lines[at]
        elif what == "double":
            lines.insert(other, lines[at])
        elif what == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif what == "hurt":
            lines[at] = draw(hurt_lines(lines[at]))
        else:
            lines.insert(at, draw(new_lines()))
    data = b"\n".join(lines)
    return cli, data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def vocabulary(cli: str):
    """Objects made of the names and words of a CLI's own events, in any arrangement."""
    names, words = set(), set()
    for event in events(cli):
        for path in places(event):
            names.update(name for name in path if isinstance(name, str))
            value = functools.reduce(lambda inner, key: inner[key], path, event)
            if isinstance(value, str) and len(value) < 40:
                words.add(value)
    leaves = st.sampled_from(sorted(words)) | hostile.scalars | anything
    inner = st.recursive(
        leaves,
        lambda deeper: (
            st.lists(deeper, max_size=3) | st.dictionaries(st.sampled_from(sorted(names)), deeper, max_size=5)
        ),
        max_leaves=10,
    )
    kinds = sorted({event["type"] for event in events(cli) if isinstance(event.get("type"), str)})
    return st.builds(
        lambda kind, fields: hostile.dump({**fields, "type": kind}).encode(),
        st.sampled_from(kinds),
        st.dictionaries(st.sampled_from(sorted(names)), inner, max_size=6),
    )


vocabularies = {cli: vocabulary(cli) for cli in NAMES}
inventions = clis.flatmap(lambda cli: st.tuples(st.just(cli), st.lists(vocabularies[cli], max_size=8).map(b"\n".join)))
endings = st.builds(
    Ending,
    st.sampled_from([0, 0, 1, 130, -9, -15]),
    st.sampled_from(["", "", "cancelled", "timed_out", "idle", "lingering", "silent"]),
    st.just("") | hostile.any_text | long_texts.map(lambda text: text[-8000:]),
)


# --- a run without its process --------------------------------------------------------------


def played(cli: str, pieces: list[bytes], end: Ending, limit: int = 11_000) -> tuple[Result, dict]:
    """What a server makes of this output: the result and the tool's result; checks all on the way."""
    kind = agent_cli(cli)
    reader, lines = kind.reader("/srv/project"), Lines(MARK)
    labels: list[str] = []
    for piece in pieces:
        for line in lines.feed(piece):
            reader.feed(line)
        labels += reader.activity.take_labels()
    reader.feed(lines.end())
    reader.finish()
    labels += reader.activity.take_labels()
    for label in labels:
        assert len(label) <= MAX_LABEL + 20, label
        assert not CONTROLS_OR_LINE_ENDS.search(label), label
    result = Result(cli, judge(kind, reader, end), reader, Request("p", "/srv/project"))
    result.exit_status, result.errors = end.exit_status, end.errors
    result.changes = dict(reader.activity.files)
    settings = Settings()
    settings.result_bytes = limit
    path = "/home/user/full.txt" if too_long(result, settings) else ""
    text, structure = text_of(result, settings, path), structure_of(result, settings, path)
    assert "".join(full_text(result, reader.answer_parts()))
    check_ended(text, structure, limit)
    for line in summary(reader.steps(answered=result.status.answered)):
        assert not CONTROLS_OR_LINE_ENDS.search(line), line
    if "\n--- Activity" in text:
        account = text.partition("\n--- Activity")[2]
        assert structure["status"] != "completed" or not CONTROLS.search(account), account
    return result, structure


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("path", corpus.entries("agent_streams"), ids=corpus.name)
def test_what_once_broke_a_reader_ends_with_a_result_whichever_cli_prints_it(path):
    data = path.read_bytes()
    for cli in NAMES:
        for end in (Ending(0), Ending(1, "", data[-8000:].decode("utf-8", "replace")), Ending(-15, "timed_out")):
            played(cli, [data], end)


@pytest.mark.parametrize("limit", [2000, 11_000])
def test_failures_in_characters_of_several_bytes_stay_within_the_limit(limit):
    errors = "\U0001f980" * 4000
    for cli in NAMES:
        played(cli, [json.dumps({"type": "turn.failed", "error": errors}).encode()], Ending(1, "", errors), limit)


@given(streams(), endings, st.sampled_from([7, 1000, 262_144]), st.sampled_from([2000, 11_000]))
def test_a_recorded_run_with_wounds_ends_with_a_result(stream, end, size, limit):
    cli, data = stream
    played(cli, cut(data, max(size, len(data) // 500)), end, limit)


@given(inventions, endings)
def test_events_of_the_right_words_in_any_arrangement_end_with_a_result(stream, end):
    cli, data = stream
    played(cli, [data], end)


@given(clis, st.lists(hostile.json_bytes, max_size=6).map(b"\n".join), endings)
def test_bytes_of_any_kind_end_with_a_result(cli, data, end):
    played(cli, [data], end)


# --- memory ---------------------------------------------------------------------------------

FLOOD = 40  # events
SWOLLEN_CHARS = 25_000  # of each of their texts: a MB a field in all
# A step keeps two thousand characters of a text, and four thousand of a path.
HELD_BYTES = FLOOD * 16_000


def swollen(value: object, tail: str, key: str = "") -> object:
    """The same event with long and new texts wherever it has one that does not say what it is."""
    if isinstance(value, dict):
        return {name: swollen(inner, tail, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [swollen(inner, tail, key) for inner in value]
    if isinstance(value, str) and key not in (*KINDS, "status"):
        return value[:20] + tail
    return value


def held_bytes(root: object) -> int:
    """The size of all that is reached from an object, code left out."""
    seen, waiting, size = set(), [root], 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType)):
            continue
        seen.add(id(value))
        size += sys.getsizeof(value)
        waiting += gc.get_referents(value)
    return size


def kind_of(event: object) -> str:
    """The words in an event that decide who reads it."""
    if isinstance(event, dict):
        inner = [str(value) if name in KINDS else kind_of(value) for name, value in sorted(event.items())]
        return " ".join(filter(None, inner))
    return " ".join(filter(None, map(kind_of, event))) if isinstance(event, list) else ""


@pytest.mark.parametrize("cli", NAMES)
def test_a_flood_of_long_events_does_not_fill_memory(cli, monkeypatch):
    monkeypatch.setattr(text, "KEPT_CHARS", 50_000)
    for event in {kind_of(event): event for event in events(cli)}.values():
        reader = agent_cli(cli).reader("/srv/project")
        for number in range(FLOOD):
            reader.feed(json.dumps(swollen(event, f"-{number}-" + "x" * SWOLLEN_CHARS)).encode())
            reader.activity.take_labels()
        assert held_bytes(reader) < HELD_BYTES, event


def test_an_answer_without_end_keeps_its_beginning_and_its_end(monkeypatch):
    monkeypatch.setattr(text, "KEPT_CHARS", 1000)
    run = agent_cli("gemini").reader("/srv/project")
    for number in range(5000):
        run.feed(json.dumps({"type": "message", "role": "assistant", "content": f"{number} ", "delta": True}).encode())
    run.finish()
    (answer,) = run.answer_parts()
    assert answer.startswith("0 1 2 3 ")
    assert " parts left out: too long to keep" in answer
    assert answer.endswith(" 4998 4999 ")
    assert len(answer) < 2100


def test_an_event_that_is_nested_as_deep_as_can_just_be_parsed_breaks_nothing():
    for levels in range(800, 1000):  # around the depth at which the parser gives up, and writing it does so earlier
        nested = hostile.nested(levels, core="1")
        item = f'{{"id":"1","type":"mcp_tool_call","server":"s","tool":"t","arguments":{nested}}}'
        run = agent_cli("codex").reader("/srv/project")
        run.feed(f'{{"type":"item.completed","item":{item}}}'.encode())
        assert len(run.steps(answered=False)) == 1
