"""What build.py does to the sources on their way into the archive."""

from __future__ import annotations

import ast
import importlib.util
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "termsprawlctl").rglob("*.py"))


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build", ROOT / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_with_positions(source: bytes) -> str:
    """The program as a tree with line numbers, without its docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                del node.body[0]
    # What a docstring ends with ends earlier without it: only where things begin is compared.
    for node in ast.walk(tree):
        if hasattr(node, "end_lineno"):
            node.end_lineno = node.end_col_offset = None
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_without_comments_is_the_same_program_on_the_same_lines(build, path):
    source = path.read_bytes()
    bare = build.without_comments(source)
    assert bare.count(b"\n") == source.count(b"\n")
    assert code_with_positions(bare) == code_with_positions(source)
    kinds = {token.type for token in tokenize.generate_tokens(io.StringIO(bare.decode()).readline)}
    assert tokenize.COMMENT not in kinds


def test_strings_that_look_like_comments_stay(build):
    source = (
        b'"""Doc."""\n\n\ndef f():\n    """Only\n    this."""\n\n\nX = "# not"  # but this\nY = """a\n# inside\n"""\n'
    )
    assert build.without_comments(source) == (b'""\n\n\ndef f():\n    ""\n\n\n\nX = "# not"\nY = """a\n# inside\n"""\n')
