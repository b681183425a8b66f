"""The rules of the style sheet in CONTRIBUTING.md that a program can check."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

from termsprawlctl.cli import arguments, parser
from termsprawlctl.operations import guides
from termsprawlctl.operations.table import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "termsprawlctl"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACES = ("*.md", "docs/*.md", "docs/*.1", "examples/**/*.sh", "examples/**/*.md", "Makefile")
DOCUMENTS = sorted({str(path.relative_to(ROOT)) for place in PLACES for path in ROOT.glob(place)})
MAX_WORDS = 30  # of a sentence in a help or an error
# Where an error has its next step among its arguments, unless that is the second.
NEXT_STEP_AT = {"NoSession": 0, "StepError": 2}
# Errors that are made without one, and why.
WITHOUT_NEXT_STEP = {
    "TmuxError": "tmux's own words; host/terminals/server.py adds what to do where that is known",
    "TargetGoneError": "says that a pane is gone; whoever asked for it raises EndedError",
    "Occupied": "its text is made by _occupied_text(), with the next step",
    "HalfTypedError": "its constructor has the text and the next step",
}
# Sentences that stood in these texts once; the table of terms has to catch each.
AVOIDED = (
    "run the embedded host where the app is not",
    "the tool said no",
    "its cause and what mends it",
    "what a call says goes before these flags",
    "prints what makes a shell complete",
    "A host that was started outlives its shell and a lost connection",
    "Each fault that is mended gets a test that fails without the mend",
)
ERRORS = re.compile(r"\w*(Error|Refused|Unavailable|Fault|InvalidCall|Conflict|Occupied)")


def terms() -> dict[str, str]:
    """The word to avoid and the word to use, out of the table of the style sheet."""
    table = CONTRIBUTING.partition("## Style sheet")[2]
    return {
        word.strip(): use
        for avoid, use in re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)
        for word in avoid.split(",")
        if not avoid.startswith(("not", "---"))
    }


TERMS = terms()


def wrong_terms(text: str) -> list[str]:
    return [term for term in TERMS if re.search(rf"\b{re.escape(term)}\b", text, re.IGNORECASE)]


def helps() -> dict[str, str]:
    """The words of every help: descriptions, arguments and epilogs, without the examples."""
    found = {}

    def add(name: str, one: arguments.Parser) -> None:
        lines = [line for line in (one.epilog or "").splitlines() if not line.startswith("  ")]
        parts = ["\n".join(lines), one.description or ""]
        for action in one.actions():
            if action.help not in (None, argparse.SUPPRESS):
                parts.append(str(action.help))
            if isinstance(action.choices, dict):
                for shown in action._choices_actions:
                    add(f"{name} {shown.dest}", action.choices[shown.dest])
        found[name] = "\n\n".join(parts)

    for command in parser.COMMANDS:
        add(command, parser.command_parser(command))
    found["termsprawlctl"] = "\n".join(line for line in parser.EPILOG.splitlines() if not line.startswith("  "))
    return found


HELPS = helps()


def text_of(node: ast.expr) -> str:
    """The text of a literal; X for each value in it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return "X"


def own_errors() -> set[str]:
    """CtlError and the names of all classes below it."""
    bases = [
        (node.name, base.id)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name)
    ]
    found, size = {"CtlError"}, 0
    while size < len(found):
        size = len(found)
        found |= {name for name, base in bases if base in found}
    return found


OWN_ERRORS = own_errors()


def errors() -> list[tuple[str, list[str]]]:
    """(room/module:line, the arguments' texts) of every error that the package makes."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name in OWN_ERRORS or ERRORS.fullmatch(name):
                    place = f"{path.relative_to(PACKAGE)}:{node.lineno} {name}"
                    found.append((place, [text_of(argument) for argument in node.args]))
    return found


ALL_ERRORS = errors()


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?;:])\s+|\n\n", text)


def test_the_style_sheet_has_its_list():
    assert TERMS["mend"] == "fix"
    for example in AVOIDED:
        assert wrong_terms(example) != [], example
    assert len(TERMS) > 10


@pytest.mark.parametrize("name", list(HELPS))
def test_a_help_keeps_to_the_terms_and_to_short_sentences(name):
    assert wrong_terms(HELPS[name]) == []
    assert [one for one in sentences(HELPS[name]) if len(one.split()) > MAX_WORDS] == []


def test_errors_keep_to_the_terms_and_to_short_sentences():
    assert len(ALL_ERRORS) > 200
    for place, texts in ALL_ERRORS:
        text = " ".join(texts)
        assert wrong_terms(text) == [], place
        assert [one for one in sentences(text) if len(one.split()) > MAX_WORDS + 10] == [], place


def has_next_step(place: str, texts: list[str]) -> bool:
    at = NEXT_STEP_AT.get(place.rsplit(maxsplit=1)[-1], 1)
    return len(texts) > at and bool(texts[at])


def test_no_error_is_without_a_next_step():
    assert {"UsageError", "EndpointError", "StepError", *WITHOUT_NEXT_STEP} < OWN_ERRORS
    without = [
        place
        for place, texts in ALL_ERRORS
        if place.rsplit(maxsplit=1)[-1] in OWN_ERRORS - set(WITHOUT_NEXT_STEP) and not has_next_step(place, texts)
    ]
    assert without == []


def test_an_error_without_a_next_step_is_found():
    assert not has_next_step("a.py:1 CtlError", ["it failed."])
    assert not has_next_step("a.py:1 CtlError", ["it failed.", ""])
    assert not has_next_step("a.py:1 StepError", ["copy", "it failed."])
    assert has_next_step("a.py:1 CtlError", ["it failed.", "Try again."])


@pytest.mark.parametrize("topic", list(guides.TOPICS))
def test_guides_keep_to_the_terms(topic):
    assert wrong_terms(guides.read(topic)) == []


def test_operations_keep_to_the_terms():
    for operation in OPERATIONS.values():
        texts = [operation.description, *(argument.description for argument in operation.arguments)]
        assert wrong_terms(" ".join(texts)) == [], operation.name


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_keep_to_the_terms(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    if name == "CONTRIBUTING.md":
        text = text.partition("## Style sheet")[0]
    assert wrong_terms(re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.DOTALL)) == []
