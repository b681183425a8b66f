"""The reference and the manual page are what the program itself says; nothing in them can drift."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from termsprawlctl.cli import parser
from termsprawlctl.operations.table import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generate():
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_are_what_make_docs_writes(generate):
    for name, text in (("reference.md", generate.markdown()), ("termsprawlctl.1", generate.manual())):
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name} is out of date: run `make docs`"


def test_every_command_and_operation_stands_in_both(generate):
    reference, manual = (DOCS / "reference.md").read_text(), (DOCS / "termsprawlctl.1").read_text()
    names = [command.name for command in generate.commands()]
    assert [name for name in names if " " not in name] == list(parser.COMMANDS)
    assert "host start" in names
    assert "mcp agent" in names
    for name in (*names, *OPERATIONS):
        assert re.search(rf"^###+ {name}$", reference, re.MULTILINE), name
        assert re.search(rf"^\.SS {name}$", manual, re.MULTILINE), name
    for text in (reference, manual):
        for word in ("ready-fd", "ready\\-fd", "==SUPPRESS=="):
            assert word not in text


def test_examples_become_code_and_remarks_text(generate):
    epilog = "examples:\n  a b\n  c\n\nText that\ngoes on:\n  code\n"
    assert generate.remarks(epilog) == [("code", "a b\nc"), ("text", "Text that goes on:"), ("code", "code")]


@pytest.mark.counterpart
def test_the_manual_page_is_read_without_a_warning():
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed; tests/counterparts/apt-docs.txt lists it")
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", DOCS / "termsprawlctl.1"], capture_output=True, check=True, text=True
    )
    # The last version of the macros has new opinions on style with every release.
    assert [line for line in done.stderr.splitlines() if "warning" in line or "error" in line] == []
    shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "TERMSPRAWLCTL(1)" in shown
    assert "termsprawlctl call canvas_move nodeId=n-1 x=20 y=40" in shown


def test_every_picture_that_a_document_shows_is_there_and_is_whole():
    shown = set()
    for document in (ROOT / "README.md", *DOCS.glob("*.md")):
        for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", document.read_text(encoding="utf-8")):
            shown.add(document.parent / path)
            assert ET.parse(document.parent / path).getroot().tag.endswith("svg"), path
    assert {path.name for path in shown} == {"canvas.svg", "session.svg"}


def test_every_link_between_documents_leads_somewhere():
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for path in re.findall(r"\]\(([^):#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / path).exists(), f"{document.name}: {path}"
