"""The guides have to be right about the operations: agents act on them and know nothing else."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from termsprawlctl.app import transport
from termsprawlctl.cli import fields
from termsprawlctl.host.terminals import nodes
from termsprawlctl.operations import guides, schema
from termsprawlctl.operations.table import OPERATIONS

MAX_COLUMNS = 170  # a table row; prose stays below 130


def all_text() -> str:
    return "\n".join(guides.read(topic) for topic in guides.TOPICS)


def examples(topic: str) -> list[list[str]]:
    """The words after `call` of each example, as a shell takes them apart; here-documents become JSON."""
    found = []
    text = guides.read(topic)
    for line in re.findall(r'(?:^ {4,}|`)("\$TERMSPRAWL_CTL" call .*?)(?:`|$)', text, re.MULTILINE):
        heredoc = re.search(re.escape(line) + r"\n    (\{.*\})\n    JSON\n", text)
        words = shlex.split(line.replace("<<'JSON'", ""))[2:]
        found.append([heredoc[1] if word == "-" and heredoc else word for word in words])
    return found


def test_the_topics_are_the_operations_own_in_the_same_order():
    declared = schema.input_schema(OPERATIONS["guide_read"])
    assert tuple(declared["properties"]["topic"]["enum"]) == tuple(guides.TOPICS)
    assert tuple(guides.TOPICS) == ("overview", "browser", "terminal", "canvas", "context", "agents", "artifacts")


@pytest.mark.parametrize(("topic", "summary"), guides.TOPICS.items())
def test_each_guide_can_be_read_in_one_go(topic, summary):
    lines = guides.read(topic).splitlines()
    assert lines[0].startswith("# ")
    assert 30 <= len(lines) <= 70
    assert max(map(len, lines)) <= MAX_COLUMNS
    assert summary.strip()
    assert "\n" not in summary


@pytest.mark.parametrize("topic", ["", "Overview", "terminal.md", "../table", "overview\0", None, 5])
def test_a_guide_that_there_is_not_is_an_error_that_names_the_topics(topic):
    with pytest.raises(ValueError, match=", ".join(guides.TOPICS)):
        guides.read(topic)


@pytest.mark.parametrize("topic", guides.TOPICS)
def test_each_example_is_a_call_that_the_table_allows(topic):
    assert examples(topic)
    for words in examples(topic):
        operation = words[0]
        if operation == "OPERATION":
            continue
        rest = words[1:]
        for option in ("--field", "--save"):
            if option in rest:
                position = rest.index(option)
                del rest[position : position + 2]
        schema.validate(operation, fields.read_arguments(rest, operation))


@pytest.mark.parametrize("topic", guides.TOPICS)
def test_each_json_object_in_a_guide_is_json(topic):
    for text in re.findall(r'^    (\{"ok".*\})$', guides.read(topic), re.MULTILINE):
        assert isinstance(json.loads(text)["ok"], bool)


def test_every_operation_is_taught_and_no_other_one_is_made_up():
    named = set(
        re.findall(r"\b(?:session|guide|canvas|sticky|browser|terminal|agent|context|artifact)_[a-z]+\b", all_text())
    )
    assert named == set(OPERATIONS)


def test_extensions_are_taught_only_where_it_says_that_not_every_host_has_them():
    text = guides.read("terminal")
    section = text.partition("## Where session_info lists them")[2].partition("\n## ")[0]
    assert section
    rest = all_text().replace(section, "")
    for name in (one.name for one in OPERATIONS.values() if one.extension):
        assert f"`{name}`" in section
        assert name not in rest


def test_the_limits_are_the_real_ones():
    overview, terminal, canvas_guide = (guides.read(topic) for topic in ("overview", "terminal", "canvas"))
    assert f"{schema.MAX_STRING_CHARS:,} characters" in overview
    assert f"between -{schema.MAX_NUMBER:,} and {schema.MAX_NUMBER:,}" in overview
    assert f"1 to {schema.MAX_ITEMS} items" in overview
    assert f"{transport.DEADLINE_S:g} s" in overview
    assert f"last {nodes.DEFAULT_READ_CHARS:,} characters" in terminal
    assert f'"maxChars": {nodes.MAX_READ_CHARS}' in terminal
    assert f"shorter than {schema.MAX_ITEM_CHARS + 1} characters" in canvas_guide


def test_the_errors_that_the_overview_explains_are_the_ones_that_come():
    overview = guides.read("overview")
    wrong = {
        "Missing argument: K": ("terminal_read", {}),
        "Unknown argument: K": ("terminal_read", {"nodeId": "n", "K": 1}),
        "Invalid K": ("terminal_read", {"nodeId": 5}),
        "Unknown operation": ("terminal_reed", {}),
    }
    for text, (operation, args) in wrong.items():
        with pytest.raises(schema.InvalidCall, match=text.replace("K", r"\w+")):
            schema.validate(operation, args)
        assert f"`{text}`" in overview
    assert "`Tool connection unavailable: ...`" in overview
    assert transport.call("/none")["error"].startswith("Tool connection unavailable: ")


def test_the_choices_of_agents_are_all_named():
    declared = schema.input_schema(OPERATIONS["agent_launch"])
    assert ", ".join(declared["properties"]["agent"]["enum"]) in guides.read("agents")
