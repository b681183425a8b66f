"""`install --server tui`: a share by its name, and tools that the client calls without asking."""

from __future__ import annotations

import json

import pytest

from termsprawlctl.install import jsonc, jsonedit, tomledit
from termsprawlctl.install.clients import CLIENTS

WORDS = ("--server", "tui", "--name", "work")
TOOLS = ["get_view_context", "select_session"]
# A file of the user's that has something beside, and where in it.
FILES = {
    "claude": (".claude/settings.json", '{\n  "permissions": {\n    "allow": [\n      "Bash(ls:*)"\n    ]\n  }\n}\n'),
    "codex": (".codex/config.toml", 'model = "x"  # mine\n'),
    "gemini": (".gemini/settings.json", '{\n    // mine\n    "theme": "dark"\n}\n'),
    "opencode": (".config/opencode/opencode.json", '{\n  "permission": {"bash": "ask"}, // mine\n}\n'),
}


def read(home, client: str):
    text = (home.folder / FILES[client][0]).read_text()
    return tomledit.read(text, ()) if client == "codex" else jsonedit.read(text, jsonc.JSONC, ())


def allowed(home, client: str) -> object:
    value = read(home, client)
    if client == "claude":
        return value["permissions"]["allow"]
    if client == "codex":
        return value["mcp_servers"]["work"]["tools"]
    return value["mcpServers"]["work"]["trust"] if client == "gemini" else value["permission"]


WANTED = {
    "claude": ["Bash(ls:*)", *(f"mcp__work__{tool}" for tool in TOOLS)],
    "codex": {tool: {"approval_mode": "approve"} for tool in TOOLS},
    "gemini": True,
    "opencode": {"bash": "ask", **{f"work_{tool}": "allow" for tool in TOOLS}},
}


@pytest.mark.parametrize("client", list(CLIENTS))
def test_an_entry_by_name_has_a_path_that_stays_and_serves_before_anybody_shares(home, client):
    facts = json.loads(home.install(client, *WORDS, "--write", "--json").stdout)
    path = home.folder / ".local/state/termsprawlctl/tui/work/endpoint.json"
    assert facts["argv"][1:] == ["mcp", "tui", "--endpoint", str(path), "--later"]
    assert (facts["name"], facts["verified"]["tools"]) == ("work", 2)
    assert "allowed" not in facts
    assert json.loads(home.install(client, *WORDS, "--json").stdout)["action"] == "keep"


@pytest.mark.parametrize("client", list(FILES))
def test_the_tools_are_allowed_beside_what_the_user_has_and_go_without_a_trace(home, client):
    name, text = FILES[client]
    home.put(name, text)
    for _ in range(2):
        home.install(client, *WORDS, "--allow", "--write", "--no-verify")
        assert allowed(home, client) == WANTED[client]
    home.uninstall(client, *WORDS, "--write")
    assert (home.folder / name).read_text() == text


@pytest.mark.parametrize("client", list(FILES))
def test_what_was_made_for_the_rules_alone_goes_with_them(home, client):
    before = sorted(home.folder.rglob("*"))
    home.install(client, *WORDS, "--allow", "--write", "--no-verify")
    home.uninstall(client, *WORDS, "--write")
    assert sorted(home.folder.rglob("*")) == before


@pytest.mark.parametrize("client", list(FILES))
def test_rules_that_came_later_stay(home, client):
    home.put(*FILES[client])
    home.install(client, *WORDS, "--allow", "--write", "--no-verify")
    home.install(client, "--server", "tui", "--name", "other", "--allow", "--write", "--no-verify")
    home.uninstall(client, *WORDS, "--write")
    found = json.dumps(read(home, client))
    assert ("work" in found, "other" in found) == (False, True)


def test_without_the_word_nothing_is_allowed_and_printing_writes_nothing(home):
    said = home.install("claude", *WORDS, "--write", "--no-verify").stderr
    assert "Add --allow" in said
    assert not (home.folder / ".claude").exists()
    shown = home.install("claude", *WORDS, "--allow").stdout
    assert "mcp__work__select_session" in shown
    assert not (home.folder / ".claude").exists()


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude/settings.json", '{"permissions": {"allow": "all"}}'),
        ("claude", ".claude/settings.json", '{"permissions": []}'),
        ("claude", ".claude/settings.json", "{"),
        ("opencode", ".config/opencode/opencode.json", '{"permission": "ask"}'),
    ],
)
def test_where_a_rule_has_no_room_nothing_at_all_is_written(home, client, name, text):
    path = home.put(name, text)
    files = sorted(home.folder.rglob("*"))
    said = home.install(client, *WORDS, "--allow", "--write", status=1).stderr
    assert f"{path} cannot be changed safely" in said
    assert (path.read_text(), sorted(home.folder.rglob("*"))) == (text, files)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cursor", *WORDS, "--allow"], "Leave --allow out"),
        (["claude", "--allow"], "--allow goes with --server tui"),
        (["claude", "--server", "tui"], "--name NAME"),
        (["claude", "--server", "tui", "--name", "w" * 40], "no name for a share"),
    ],
    ids=repr,
)
def test_wrong_words(home, words, said):
    assert said in home.install(*words, status=2).stderr


def test_a_link_out_of_the_project_is_not_followed(home, tmp_path):
    (home.project / ".claude").mkdir()
    (home.project / ".claude/settings.json").symlink_to(tmp_path / "elsewhere.json")
    said = home.install("claude", *WORDS, "--allow", "--scope", "project", "--write", status=1).stderr
    assert "leads out of the project" in said
    assert not (tmp_path / "elsewhere.json").exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"k": ["a"]}',
        '{"k": []}',
        '{"k": [ ]}',
        "{}",
        '{"k": ["a", "c"]}',
        '{\n\t"k": [\n\t\t"a",\n\t\t"c"\n\t]\n}\n',
        '{\r\n  "k": [\r\n    "a"\r\n  ]\r\n}',
    ],
)
def test_items_of_a_list_come_and_go_alone(text):
    there = jsonedit.read(text, jsonc.STRICT, ("k",)) or []
    added = jsonedit.add_items(text, jsonc.STRICT, ("k",), ["x", "y", "a"])
    assert jsonedit.read(added, jsonc.STRICT, ("k",)) == [*there, "x", "y", *(["a"] if "a" not in there else [])]
    removed = jsonedit.remove_items(added, jsonc.STRICT, ("k",), ["x", "y"])
    assert (jsonedit.read(removed, jsonc.STRICT, ("k",)), removed) == (
        there or ["a"],
        text if "a" in there else removed,
    )
