"""Changing one table of a TOML text: its meaning changes by that table, its other bytes not at all."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termsprawlctl.install import toml, tomledit

ENTRY = {"command": '/opt/a "b" \\ é\x01', "args": ["mcp", "--session", "/tmp/x"]}
PATH = ("mcp_servers", "termsprawl")
BLOCK = '[mcp_servers.termsprawl]\ncommand = "c"\nargs = ["mcp"]\n'
SIMPLE = {"command": "c", "args": ["mcp"]}

# What people have in such a file, and what the language allows besides.
REALISTIC = '''\
# my settings
model = "gpt-5"   # the big one
approval_policy = 'on-request'
notify = [
  "notify-send", # a comment
  "Codex",
]
"quoted key" = 1
history.persistence = "none"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]
startup_timeout_sec = 20

[mcp_servers.docs.env]
TOKEN = """
multi "line" \\
   joined"""

[[profiles]]
name = "a"
[profiles.deep]
at = 1979-05-27T07:32:00.999-07:00
[[profiles]]
name = "b"
when = {day = 1979-05-27, time = 07:32:00, nested.key = [1_000, 0xDEAD, -1.5e3, +inf, nan, true]}

[tui]
theme = """a""" # end'''


def data(text: str) -> dict:
    return toml.tree_of(toml.parse(text))


def test_a_realistic_file_gets_the_table_at_its_end_and_loses_it_again():
    added = tomledit.put(REALISTIC + "\n", PATH, SIMPLE)
    assert added == REALISTIC + "\n\n" + BLOCK
    assert tomledit.remove(added, PATH) == REALISTIC + "\n"
    assert tomledit.put(added, PATH, SIMPLE) == added


def test_strings_of_every_kind_come_back_as_they_were():
    text = tomledit.put("", PATH, ENTRY)
    assert tomledit.read(text, PATH) == ENTRY
    with_env = tomledit.put("", PATH, {**ENTRY, "env": {"A": "1", "B.C": "2"}})
    assert tomledit.read(with_env, PATH) == {**ENTRY, "env": {"A": "1", "B.C": "2"}}
    assert tomledit.remove(with_env, PATH).strip() == ""


@pytest.mark.parametrize("text", ["", "a = 1\n", "a = 1", "a = 1\r\nb = 2\r\n", "\ufeffa = 1\n", "# only a comment\n"])
def test_the_end_of_the_text_is_respected(text):
    added = tomledit.put(text, PATH, SIMPLE)
    assert tomledit.read(added, PATH) == SIMPLE
    assert added.startswith(text)
    assert ("\r\n" in text) == ("\r\n" in added)
    assert not re.search(r"(?<!\r)\n", added) or "\r\n" not in text
    taken = tomledit.remove(added, PATH)
    assert taken in (text, text + "\n")


def test_a_table_that_is_there_gets_the_new_values_and_keeps_its_others():
    text = f"# x\n{BLOCK}enabled = false # mine\nstartup_timeout_sec = 20\n\n[other]\na = 1\n"
    changed = tomledit.put(text, PATH, {"command": "d", "args": ["mcp", "x"]})
    assert changed == text.replace('"c"', '"d"').replace('["mcp"]', '["mcp", "x"]')
    more = tomledit.put(text, PATH, {**SIMPLE, "cwd": "/x", "env": {"A": "b"}})
    assert data(more)["mcp_servers"]["termsprawl"]["cwd"] == "/x"
    assert data(more)["mcp_servers"]["termsprawl"]["env"] == {"A": "b"}
    assert data(more)["mcp_servers"]["termsprawl"]["enabled"] is False


def test_what_the_client_added_below_the_table_goes_with_it():
    # Left alone it would be a server without a command, and the client would not start.
    text = f'a = 1\n\n{BLOCK}\n[mcp_servers.termsprawl.tools.call]\napproval = "yes"\n\n[z]\nb = 2\n'
    assert tomledit.remove(text, PATH) == "a = 1\n\n[z]\nb = 2\n"
    apart = f'{BLOCK}\n[z]\nb = 2\n\n[mcp_servers.termsprawl.env]\nX = "1"\n'
    assert tomledit.remove(apart, PATH) == "\n[z]\nb = 2\n"


def test_comments_around_the_table_stay():
    text = f"a = 1\n# about it\n{BLOCK}# after it\n[z]\n"
    assert tomledit.remove(text, PATH) == "a = 1\n# about it\n# after it\n[z]\n"


def test_an_entry_in_a_shared_table_is_taken_out_alone():
    text = '[mcp_servers]\ndocs = {command = "x"}\ntermsprawl = {command = "y"} # ours\nother.command = "z"\n'
    assert tomledit.remove(text, PATH) == '[mcp_servers]\ndocs = {command = "x"}\nother.command = "z"\n'
    dotted = 'mcp_servers.termsprawl.command = "y"\nmcp_servers.other.command = "z"\nmcp_servers.termsprawl.args = []\n'
    assert tomledit.remove(dotted, PATH) == 'mcp_servers.other.command = "z"\n'


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {termsprawl = {command = "x"}}\n',
        'mcp_servers = {docs = {command = "x"}, termsprawl = {command = "y"}}\n',
    ],
)
def test_an_entry_inside_an_inline_table_is_left_to_people(text):
    with pytest.raises(toml.NotToml, match="by hand"):
        tomledit.put(text, PATH, SIMPLE)
    with pytest.raises(toml.NotToml, match=r"by hand|defined twice"):
        tomledit.remove(text, PATH)


def test_an_inline_table_gets_no_entry_and_the_reason_is_told():
    with pytest.raises(toml.NotToml, match="mcp_servers is an inline table"):
        tomledit.put('mcp_servers = {docs = {command = "x"}}\n', PATH, SIMPLE)


INVALID = [
    "a",
    "a =",
    "a = 1 b = 2",
    "= 1",
    "a = 1\na = 2",
    "[a]\n[a]",
    "[a]\nb = 1\n[a.b]",
    "a = {b = 1}\n[a.c]",
    "a = [1]\n[[a]]",
    "[[a]]\n[a]",
    "[a]\n[[a]]",
    "a.b = 1\n[a]",
    "[a.b.c]\nz = 9\n[a]\nb.c.t = 1",
    "[[a.b]]\n[a]\nb.y = 2",
    "a = {b = 1, b = 2}",
    "a = {b = {x = 1}, b.y = 2}",
    "a = {b = 1,}",
    "a = {b = 1\n}",
    "[a",
    "[a]]",
    "[[a]",
    "[a] b = 1",
    "[]",
    "[a..b]",
    "a = 01",
    "a = 1__0",
    "a = 0x",
    "a = .5",
    "a = 5.",
    "a = True",
    "a = 2020-13-01",
    "a = 25:00:00",
    'a = "x',
    'a = "x\ny"',
    'a = "\\q"',
    'a = "\\ud800"',
    'a = "x\x01"',
    "a = 'x\ny'",
    'a = """x',
    'a = """x""""""',
    "a = '''x''''''",
    "a = [1, 2",
    "a = [1 2]",
    "a = [,]",
    "a = 1 # \x01",
    "a = 1\rb = 2",
    "a b = 1",
    'a = "x" "y"',
    '"""a""" = 1',
    "é = 1",
    "a = 1979-05-27 07:32",
    "a = " + "[" * 200 + "]" * 200,
]
VALID = [
    REALISTIC,
    "",
    "\n\n# x\n",
    "a.b.c = 1\na.b.d = 2\n[a.e]\nf = 1",
    "[a.b]\n[a]\nc = 1",
    "[fruit]\napple.color = 1\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = true",
    "[[a]]\n[a.b]\nx = 1\n[[a]]\n[a.b]\nx = 2\n[[a.c]]\n[[a.c]]\ny = 1",
    '"" = 1',
    "3.14 = 'pi'",
    "[ a . b . 'c d' ]  # note",
    "[[ a ]]",
    "a = []\nb = [[1, 2], ['x'], {c = 1}]\n",
    "a = [\n # x\n 1,\n\n 2, # y\n]\n",
    'a = """"two quotes""""" # end\nb = """\nx\\\n  y"""',
    "a = '''''x'''''\nb = '''\n'x' \\n'''",
    'a = "\\b\\t\\n\\f\\r\\"\\\\\\u00e9\\U0001F600"',
    "a = 1979-05-27 07:32:00\nb = 1979-05-27T07:32:00Z\nc = 07:32:00.5\nd = 1979-05-27",
    "a = 0\nb = +1\nc = -0.0\nd = 1e5\ne = 6.02E+23\nf = 0o17\ng = 0b1\nh = -inf\ni = 1_000",
    "a = {}\nb = { x = 1 , y.z = 'q' }",
    "\ufeffa = 1\r\nb = 2\r\n",
    "a\t=\t1\t#\ttab",
]


@pytest.mark.parametrize("text", INVALID)
def test_a_text_that_is_not_toml_is_refused(text):
    with pytest.raises(toml.NotToml):
        data(text)


def comparable(value: object) -> object:
    """What both readers say of a value; numbers and dates are only known to be there."""
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [comparable(one) for one in value]
    return value if isinstance(value, (str, bool)) else "other"


@pytest.mark.parametrize("text", VALID + INVALID)
def test_pythons_own_reader_agrees(text):
    tomllib = pytest.importorskip("tomllib", reason="Python reads TOML since 3.11")
    try:
        expected = comparable(tomllib.loads(text.lstrip("\ufeff")))
    except (tomllib.TOMLDecodeError, RecursionError):
        expected = None
    if text.endswith("]" * 200):
        expected = None  # deeper than anybody needs
    try:
        actual = comparable(data(text))
    except toml.NotToml:
        actual = None
    assert actual == expected
    assert (text in VALID) == (actual is not None)


WORDS = """a b a.b "c" = 1 1.5 'x' "y" \"""z\""" [ ] [[ ]] { } , true"""
LINES = ("[a]", "[a.b]", "[[a]]", "a = 1", "b = {a = 1}", "a.c = 2", "")
pieces = st.sampled_from([*WORDS.split(), " ", " = ", "# c", "\r\n", *(line + "\n" for line in LINES)])


@given(st.lists(pieces, max_size=14).map("".join))
def test_whatever_pythons_own_reader_refuses_is_refused(text):
    tomllib = pytest.importorskip("tomllib", reason="Python reads TOML since 3.11")
    try:
        expected = comparable(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        expected = None
    try:
        actual = comparable(data(text))
    except toml.NotToml:
        actual = None
    assert actual == expected


@given(st.lists(st.sampled_from(["a = 1\n", "# c\n", "\n", "[x]\n", "[mcp_servers.a]\n", "b = 'y'\n"]), max_size=6))
def test_any_text_gets_the_table_and_loses_it_again(lines):
    text = "".join(lines)
    try:
        before = data(text)
    except toml.NotToml:
        return
    added = tomledit.put(text, PATH, SIMPLE)
    assert data(added) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "termsprawl": SIMPLE}}
    assert tomledit.remove(added, PATH) == text
