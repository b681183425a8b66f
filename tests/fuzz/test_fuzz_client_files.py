"""Other programs' configuration files, however written: an entry comes and goes, or the file stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import corpus, hostile
from support.quick_folder import quick_folder

from termsprawlctl.base.errors import CtlError
from termsprawlctl.install.clients import CLIENTS, USER, Place
from termsprawlctl.install.configfile import BACKUP_SUFFIX, MAX_BYTES
from termsprawlctl.install.dialects import Server
from termsprawlctl.install.plan import Plan

SERVER = Server(["/opt/termsprawlctl", "mcp", "--session", "/s.json"], {})
BLANK = b"\xef\xbb\xbf \t\r\n"
CONTAINERS = ["mcpServers", "mcp", "servers", "context_servers", "mcp_servers", "termsprawl", "", "é"]

gaps = st.sampled_from(["", "", "", " ", "\n", "\r\n", "\n\t", " // x\n", "/* } */", "//", "\ufeff", "\u2028", "\x0b"])
names = st.sampled_from([f'"{name}"' for name in CONTAINERS]) | hostile.any_text.map(hostile.dump)


@st.composite
def json_like(draw, levels: int = 3) -> str:
    """An object as people write one: comments, odd blanks, a comma too much, a key twice."""
    pairs = []
    for _ in range(draw(st.integers(0, 3))):
        value = draw(json_like(levels - 1) if levels and draw(st.booleans()) else hostile.value_texts)
        pairs.append(draw(gaps) + draw(names) + draw(gaps) + ":" + draw(gaps) + value + draw(gaps))
    comma = draw(st.sampled_from(["", "", ","])) if pairs else ""
    return draw(gaps) + "{" + ",".join(pairs) + comma + draw(gaps) + "}" + draw(gaps)


toml_words = st.sampled_from(
    [
        *("[mcp_servers]", "[mcp_servers.docs]", "[[mcp_servers]]", "[mcp_servers.termsprawl]", "[a.b]", "[a", "[[a]]"),
        *(
            'command = "x"',
            "a.b.c = 1",
            "a = {b = 1, c.d = []}",
            "mcp_servers = {}",
            "mcp_servers.docs = {}",
            "x = [",
            "]",
        ),
        *(
            'x = """',
            '"""',
            "x = '''",
            "'''",
            'x = "\\ud800"',
            "x = 1979-05-27",
            "# comment",
            "\ufeff",
            "x = nan",
            "é = 1",
        ),
        *('"" = 1', "'a b' = 2", "x = 0xg", "[ mcp_servers . docs ]", "a = 1 # \x01", "\r", "\t", " ", "x = {", "}"),
    ]
)
toml_like = st.lists(toml_words | hostile.unicode_text, max_size=8).flatmap(
    lambda lines: st.sampled_from(["\n", "\n", "\r\n", "\n\n"]).map(lambda end: end.join([*lines, ""]))
)
files = (
    hostile.encoded(json_like() | toml_like)
    | hostile.damaged(hostile.encoded(json_like() | toml_like))
    | hostile.json_bytes
)


@pytest.fixture(scope="module")
def folder():
    with quick_folder("client") as root:
        yield root


def plan(client: str, path: Path, *, removing: bool = False) -> Plan:
    where = (client, "termsprawl", USER, Place({"HOME": "/home/you"}, "Linux", "/p"), str(path))
    return Plan.uninstall(*where) if removing else Plan.install(SERVER, *where)


def is_in(part: bytes, whole: bytes) -> bool:
    """Whether every byte of a part stands in the whole, in order, with nothing but additions between."""
    rest = iter(whole)
    return all(byte in rest for byte in part)


def check(client: str, path: Path, data: bytes) -> bool:
    """Put the entry in and take it out; whether the file could be changed at all. Nothing of the user's may go."""
    backup = path.with_name(path.name + BACKUP_SUFFIX)
    backup.unlink(missing_ok=True)
    path.write_bytes(data)
    try:
        adding = plan(client, path)
    except CtlError as no:
        refused = str(no)
    else:
        refused = ""
    if refused:
        assert path.read_bytes() == data
        assert len(refused) < 1000
        assert sorted(os.listdir(path.parent)) == [path.name]
        return False
    assert path.read_bytes() == data
    adding.carry_out()
    added = path.read_bytes()
    if adding.action == "add":
        assert is_in(data, added) or not data.strip(BLANK)
        assert backup.read_bytes() == data
        assert adding.written() == SERVER
        assert plan(client, path).action == "keep"
        plan(client, path, removing=True).carry_out()
        assert path.read_bytes() == data
    # Without what is remembered of the time before, the words of the user are there all the same.
    path.write_bytes(added)
    backup.unlink(missing_ok=True)
    plan(client, path, removing=True).carry_out()
    if adding.action == "add":
        left = path.read_bytes() if path.exists() else b""  # of a file that had nothing but our entry
        assert is_in(left, added)
        # An object that is empty without our entry may have come with it.
        gone = len(b"".join(data.split())) - len(b"".join(left.split()))
        assert gone <= len('"context_servers":{},')
        assert plan(client, path).action == "add"
    return True


@pytest.mark.parametrize("client", sorted(CLIENTS))
@pytest.mark.parametrize("path", corpus.entries("client_files"), ids=corpus.name)
def test_a_file_that_once_was_misjudged_is_changed_or_kept(folder, path, client):
    check(client, folder / "file", path.read_bytes())


@given(st.sampled_from(sorted(CLIENTS)), files)
@example("codex", b"a" + b".a" * 5000 + b" = 1")
@example("claude", b'{"x":' + b"1" * 5000 + b"}")
@example("vscode", b'\xef\xbb\xbf{"servers":{}}')
def test_any_file_is_changed_in_one_place_or_kept(folder, client, data):
    check(client, folder / "file", data)


@pytest.mark.parametrize("client", ["claude", "codex", "vscode"])
def test_strings_of_megabytes_are_read_and_kept(folder, client):
    long = "x" * (4 << 20) + '\\n\\"' * 10_000
    text = f'history = "{long}"\n' if client == "codex" else f'{{"history": "{long}"}}'
    path = folder / "file"
    path.write_text(text)
    plan(client, path).carry_out()
    assert long in path.read_text()
    plan(client, path, removing=True).carry_out()
    assert path.read_text() == text


@pytest.mark.parametrize("client", ["claude", "codex"])
@pytest.mark.parametrize("kind", ["directory", "fifo", "loop", "huge", "below a file"])
def test_what_is_no_file_or_too_large_is_named_and_left(folder, client, kind):
    path = folder / "odd"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to("odd")
    elif kind == "huge":
        with path.open("wb") as stream:
            stream.truncate(MAX_BYTES + 1)
    else:
        path.write_bytes(b"")
        path = path / "file"
    try:
        with pytest.raises(CtlError, match="odd"):
            plan(client, path).carry_out()
    finally:
        odd = folder / "odd"
        odd.rmdir() if kind == "directory" else odd.unlink()
