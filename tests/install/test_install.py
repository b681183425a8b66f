"""`install` and `uninstall` on files as people have them: one entry changes, nothing else does."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.install import configfile, jsonc, jsonedit, tomledit
from termsprawlctl.install.configfile import ConfigFile

CLAUDE = """\
{
  "numStartups": 12,
  "tipsHistory": {"shift-enter": 4},
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://example.com/mcp",
      "headers": {"Authorization": "Bearer ${TOKEN}"}
    }
  },
  "projects": {
    "/home/you/app": {"mcpServers": {}, "history": ["é漢😀", "a\\u2028b"]}
  }
}
"""
CODEX = """\
model = "gpt-5"  # the big one
sandbox_mode = 'workspace-write'

[mcp_servers.docs]
command = "npx"
args = [
  "-y",  # yes
  "docs-mcp",
]
startup_timeout_sec = 20

[mcp_servers.docs.env]
KEY = "v"

[projects."/home/you/my app"]
trust_level = "trusted"
"""
OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  // which model to use
  "model": "anthropic/claude",
  "mcp": {
    /* "old": {}, */
    "docs": {
      "type": "remote",
      "url": "https://example.com/mcp", // no login
    },
  },
}
"""
OPENCODE_2 = """\
{
  "mcp": {
    "servers": {
      "docs": { "type": "remote", "url": "https://example.com/mcp" },
    },
    "timeout": 5000,
  },
}
"""
GEMINI = """\
{
    // Keys first
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "mcpServers": {
        "docs": {"httpUrl": "https://example.com/mcp"}
    },
    "ui": {"theme": "Default"} /* end */
}
"""
CURSOR = """\
{
\t"mcpServers": {
\t\t"docs": {
\t\t\t"command": "npx",
\t\t\t"args": ["-y", "docs-mcp"]
\t\t}
\t}
}"""
VSCODE = """\
{\r
    // One for each workspace\r
    "inputs": [{"type": "promptString", "id": "key", "password": true},],\r
    "servers": {\r
        "docs": {\r
            "type": "http",\r
            "url": "https://example.com/mcp" // keep\r
        },\r
    },\r
}\r
"""
WINDSURF = '{"mcpServers":{"docs":{"serverUrl":"https://example.com/mcp"}}}'
ZED = """\
// Zed settings
//
// For information on how to configure Zed, see the Zed documentation
{
  "context_servers": {
    "docs": {
      "source": "custom",
      "command": "npx",
      "args": ["docs"],
      "env": {},
    },
  },
  "vim_mode": true,
  "theme": {
    "mode": "system",
    "light": "One Light", // by day
  },
}
"""
DESKTOP = '{\n  "globalShortcut": "",\n  "mcpServers": {}\n}\n'

# client, file below the home directory, what is in it, path to the servers
FILES = [
    ("claude", ".claude.json", CLAUDE, "mcpServers"),
    ("codex", ".codex/config.toml", CODEX, "mcp_servers"),
    ("opencode", ".config/opencode/opencode.jsonc", OPENCODE, "mcp"),
    ("opencode", ".config/opencode/opencode.json", OPENCODE_2, "mcp.servers"),
    ("gemini", ".gemini/settings.json", GEMINI, "mcpServers"),
    ("cursor", ".cursor/mcp.json", CURSOR, "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", VSCODE, "servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", WINDSURF, "mcpServers"),
    ("zed", ".config/zed/settings.json", ZED, "context_servers"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", DESKTOP, "mcpServers"),
]
EACH_FILE = pytest.mark.parametrize(("client", "name", "text", "container"), FILES, ids=lambda value: str(value)[:40])
CLIENTS = sorted({client for client, *_ in FILES})


def expected_entry(client: str, argv: list[str]) -> dict:
    """What the client's documentation, or its own command, puts under a server's name."""
    split = {"command": argv[0], "args": argv[1:]}
    return {
        "opencode": {"type": "local", "command": argv, "enabled": True},
        "claude": {"type": "stdio", **split},
        "vscode": {"type": "stdio", **split},
        "zed": {"source": "custom", **split},
    }.get(client, split)


@EACH_FILE
def test_a_realistic_file_gets_one_entry_and_loses_it_again(home, client, name, text, container):
    path = home.put(name, text)
    path.chmod(0o640)
    facts = home.facts(client, "--write")
    assert (facts["file"], facts["action"], facts["written"]) == (str(path), "add", True)
    assert facts["verified"] == {"server": "termsprawl 1.0.0", "tools": 32}
    added = path.read_bytes().decode()
    # Nothing that stood there before has gone, but for a comma at most.
    assert list(lines_not_in(text, added)) == [] or WINDSURF in text or DESKTOP in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    backup = path.with_name(path.name + ".termsprawlctl-backup")
    assert backup.read_bytes().decode() == text
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600

    again = home.facts(client, "--write", "--no-verify")
    assert (again["action"], again["written"], path.read_bytes().decode()) == ("keep", False, added)

    home.uninstall(client, "--write")
    assert path.read_bytes().decode() == text
    assert not backup.exists()


def lines_not_in(before: str, after: str):
    there = {line.strip().rstrip(",") for line in after.splitlines()}
    for line in before.splitlines():
        if line.strip().rstrip(",") not in there and not comma_put_in(line, after):
            yield line


def comma_put_in(line: str, after: str) -> bool:
    return line.strip().replace(" //", ", //") in after or line.strip().replace('"}', '"},') in after


@EACH_FILE
def test_the_entry_is_in_the_clients_own_dialect(home, client, name, text, container):
    path = home.put(name, text)
    plan = home.plan(client)
    argv = [home.ctl, "mcp", "--session", home.session]
    assert plan.entry == expected_entry(client, argv)
    assert path.read_bytes().decode() == text  # only planned
    plan.carry_out()
    assert plan.written().argv == argv
    assert entries(path, container)["termsprawl"] == expected_entry(client, argv)
    assert "docs" in entries(path, container) or "github" in entries(path, container) or client == "claude-desktop"


def entries(path: Path, container: str) -> dict:
    keys, text = tuple(container.split(".")), path.read_bytes().decode()
    return tomledit.read(text, keys) if path.suffix == ".toml" else jsonedit.read(text, jsonc.JSONC, keys)


@EACH_FILE
def test_after_other_changes_only_the_entry_is_taken_out(home, client, name, text, container):
    path = home.put(name, text)
    home.plan(client).carry_out()
    # As if the user had gone on with the file.
    added = path.read_bytes().decode()
    changed = added.replace("docs", "manuals").replace("github", "gitlab")
    changed = changed.replace('"globalShortcut": ""', '"globalShortcut": "x"')
    path.write_bytes(changed.encode())
    home.plan(client, removing=True).carry_out()
    expected = text.replace("docs", "manuals").replace("github", "gitlab")
    expected = expected.replace('"globalShortcut": ""', '"globalShortcut": "x"')
    assert path.read_bytes().decode() == expected


@pytest.mark.parametrize(
    ("client", "name", "before", "after"),
    [
        ("zed", ".config/zed/settings.json", '"context_servers": {', '"context_servers": { // my servers'),
        ("zed", ".config/zed/settings.json", '"context_servers": {', '"context_servers": {\n    /* none yet */'),
        ("codex", ".codex/config.toml", "[mcp_servers.termsprawl]", "[mcp_servers] # mine\n[mcp_servers.termsprawl]"),
    ],
)
def test_the_users_comment_around_the_entry_stays(home, client, name, before, after):
    path = home.folder / name
    home.plan(client).carry_out()
    path.write_text(path.read_text().replace(before, after))
    home.plan(client, removing=True).carry_out()
    assert after.split("\n[")[0].split("{")[-1] in path.read_text()


@pytest.mark.parametrize("client", CLIENTS)
def test_where_there_was_no_file_there_is_none_afterwards(home, client):
    plan = home.plan(client)
    plan.carry_out()
    path = Path(plan.file.path)
    assert path.is_relative_to(home.folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # Beside it at most the note on the folders that were made for it, which goes with them.
    assert {one.name for one in path.parent.iterdir() if one.is_file()} <= {
        path.name,
        path.name + configfile.MADE_SUFFIX,
    }
    home.plan(client, removing=True).carry_out()
    assert [one.name for one in home.folder.iterdir()] == ["project"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
@EACH_FILE
def test_two_servers_come_and_go_in_any_order(home, client, name, text, container, order):
    path = home.put(name, text)
    servers = [(), ("agent", "codex")]
    for words in servers:
        home.plan(client, *words).carry_out()
    assert {"termsprawl", "termsprawl-codex"} <= set(entries(path, container))
    for position in order:
        home.plan(client, *servers[position], removing=True).carry_out()
    assert path.read_bytes().decode() == text
    assert [one.name for one in path.parent.iterdir() if one.is_file()] == [path.name]


def test_a_change_by_another_program_in_between_is_not_overwritten(home):
    path = home.put(".cursor/mcp.json", CURSOR)
    plan = home.plan("cursor")
    path.write_text(CURSOR + "\n")
    with pytest.raises(CtlError, match="changed by another program"):
        plan.carry_out()
    assert path.read_text() == CURSOR + "\n"


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", "opencode.json"),
    ],
)
def test_a_projects_file_is_as_readable_as_its_others(home, client, file):
    facts = home.facts(client, "--scope", "project", "--write", "--no-verify")
    assert facts["file"] == str(home.project / file)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((home.project / file).stat().st_mode) == 0o666 & ~mask


def test_an_opencode_project_with_a_file_in_its_folder_keeps_it(home):
    (home.project / ".opencode").mkdir()
    path = home.project / ".opencode" / "opencode.jsonc"
    path.write_text("{}")
    assert home.facts("opencode", "--scope", "project")["file"] == str(path)


@pytest.mark.parametrize("client", ["codex", "windsurf", "zed", "claude-desktop"])
def test_a_client_without_files_in_projects_says_so(home, client):
    done = home.install(client, "--scope", "project", status=2)
    assert "per user only" in done.stderr


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ],
)
def test_the_clients_own_variables_say_where_its_files_are(home, client, variable, file):
    other = str(home.folder / "other place")
    done = home.install(client, "--json", **{variable: other})
    assert json.loads(done.stdout)["file"] == f"{other}/{file}"


def test_any_other_file_can_be_named(home):
    facts = home.facts("vscode", "--file", "profile.json", "--write", "--no-verify")
    assert facts["file"] == str(home.project / "profile.json")
    assert "termsprawl" in json.loads((home.project / "profile.json").read_text())["servers"]


def test_a_link_into_a_folder_of_dotfiles_stays_a_link(home):
    target = home.put("dotfiles/codex.toml", CODEX)
    link = home.folder / ".codex" / "config.toml"
    link.parent.mkdir()
    link.symlink_to(target)
    home.install("codex", "--write", "--no-verify")
    assert link.is_symlink()
    assert target.read_text().startswith(CODEX)
    assert "termsprawl" in target.read_text()
    home.uninstall("codex", "--write")
    assert (link.is_symlink(), target.read_text()) == (True, CODEX)
    assert sorted(one.name for one in target.parent.iterdir()) == ["codex.toml"]


BROKEN = [
    ("claude", ".claude.json", '{"mcpServers": {},}', "a comma after the last entry at line 1 column 18"),
    (
        "claude",
        ".claude.json",
        '{\n  // note\n  "a": 1\n}',
        "a comment, which this client cannot read, at line 2 column 3",
    ),
    ("cursor", ".cursor/mcp.json", '{"mcpServers": [', "unexpected end"),
    ("cursor", ".cursor/mcp.json", "[]", "not a JSON object"),
    ("gemini", ".gemini/settings.json", '{"a": 1,}', "a comma after the last entry"),
    ("vscode", ".config/Code/User/mcp.json", '{"servers": {"a": }}', "a value was expected at line 1 column 19"),
    ("zed", ".config/zed/settings.json", '{"context_servers": "x"}', "context_servers is not a JSON object"),
    ("opencode", ".config/opencode/opencode.json", '{"mcp": {}, "mcp": {}}', "mcp stands there twice"),
    ("codex", ".codex/config.toml", "[mcp_servers\n", "line 1"),
    ("codex", ".codex/config.toml", 'a = 1\n\nb = "x\n', "a string does not end at line 3"),
    ("codex", ".codex/config.toml", "a = 1\na = 2\n", "a is defined twice"),
    ("codex", ".codex/config.toml", "mcp_servers = {}\n", "cannot be changed safely: mcp_servers is an inline table"),
]


@pytest.mark.parametrize(("client", "name", "text", "reason"), BROKEN, ids=lambda value: str(value)[:30])
def test_a_file_that_does_not_parse_is_never_touched(home, client, name, text, reason):
    path = home.put(name, text)
    before = path.stat()
    done = home.install(client, "--write", status=1)
    assert (done.stdout, str(path) in done.stderr, reason in done.stderr) == ("", True, True), done.stderr
    if name != ".codex/config.toml" or "mcp_servers = {}" not in text:
        with pytest.raises(CtlError, match="left as it is"):
            home.plan(client, removing=True)
    after = path.stat()
    assert (path.read_text(), after.st_mtime_ns, after.st_ino) == (text, before.st_mtime_ns, before.st_ino)
    assert [one.name for one in path.parent.iterdir() if one.is_file()] == [path.name]


def test_a_file_that_is_not_utf_8_is_never_touched(home):
    path = home.put(".cursor/mcp.json", "")
    path.write_bytes(b'{"a": "\xff"}')
    assert "not UTF-8 at byte 7" in home.install("cursor", "--write", status=1).stderr
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_a_strangers_server_of_the_same_name_is_left_alone(home):
    text = '{"mcpServers": {"termsprawl": {"command": "/opt/other", "args": ["mcp"]}}}'
    path = home.put(".cursor/mcp.json", text)
    for done in (home.install("cursor", "--write", status=1), home.uninstall("cursor", "--write", status=1)):
        assert "another server under the name termsprawl (/opt/other mcp)" in done.stderr
    assert path.read_text() == text
    assert home.facts("cursor", "--name", "mine", "--write", "--no-verify")["action"] == "add"


def test_an_entry_of_an_older_place_is_brought_up_to_date_and_keeps_the_users_keys(home):
    old = {"command": "/old/termsprawlctl", "args": ["mcp"], "timeout": 5, "trust": True}
    path = home.put(".gemini/settings.json", json.dumps({"mcpServers": {"termsprawl": old}}, indent=2))
    facts = home.facts("gemini", "--write", "--no-verify")
    assert facts["action"] == "update"
    entry = json.loads(path.read_text())["mcpServers"]["termsprawl"]
    assert entry == {**old, "command": home.ctl, "args": ["mcp", "--session", home.session]}


@pytest.mark.parametrize("client", CLIENTS)
def test_words_and_variables_for_the_server_arrive(home, client):
    words = ["--server", "agent:codex", "--env", 'AGENT_CLI_MCP_MODEL=a b="c"', "--env", "E="]
    done = home.install(client, *words, "--json", "--", "--cwd", "/tmp/a b", "--", "-s", "workspace-write")
    facts = json.loads(done.stdout)
    argv = [home.ctl, "mcp", "agent", "codex", "--cwd", "/tmp/a b", "--", "-s", "workspace-write"]
    assert (facts["name"], facts["argv"]) == ("termsprawl-codex", argv)
    variables = {"AGENT_CLI_MCP_MODEL": 'a b="c"', "E": ""}
    key = "environment" if client == "opencode" else "env"
    assert facts["entry"] == {**expected_entry(client, argv), key: variables}


def test_the_server_is_asked_with_the_variables_of_its_entry(home):
    words = ["--server", "agent:codex", "--env", "AGENT_CLI_MCP_EFFORT=high", "--write"]
    facts = home.facts("cursor", *words)
    assert facts["verified"]["server"].startswith("termsprawlctl-agent-codex")
    assert facts["verified"]["tools"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cursor", "--server", "nothing"], "session, tui, agent:AGENT"),
        (["cursor", "--server", "agent"], "Usage: termsprawlctl mcp"),
        (["cursor", "--server", "agent:nobody"], "nobody"),
        (["cursor", "--server", "tui"], "--endpoint"),
        (["cursor", "--name", "a b"], "--name"),
        (["cursor", "--name", "../x"], "--name"),
        (["cursor", "--env", "x"], "Write NAME=VALUE"),
        (["cursor", "--print", "--write"], "not allowed with"),
        (["emacs"], "invalid choice"),
        (["cursor", "--file", ""], "--file needs a path"),
    ],
    ids=repr,
)
def test_wrong_words_are_told_before_anything_is_written(home, words, said):
    done = home.install(*words, status=2)
    assert (done.stdout, said in done.stderr) == ("", True), done.stderr
    assert [one.name for one in home.folder.iterdir()] == ["project"]


def test_without_the_app_the_entry_starts_a_host_and_for_the_app_it_waits(home):
    def words(**env: str) -> list[str]:
        return json.loads(home.run("install", "cursor", "--json", **env).stdout)["argv"][1:]

    assert words() == ["mcp", "--start-host"]
    assert words(TERMSPRAWL_SESSION_FILE=home.session) == ["mcp", "--wait", "30", "--session", home.session]


def test_the_value_of_a_variable_stays_out_of_error_texts(home):
    done = home.install("cursor", "--env", "1x=s3cr3t", status=2)
    assert "s3cr3t" not in done.stderr


def test_what_is_printed_can_be_pasted(home):
    shown = home.install("cursor")
    assert json.loads(shown.stdout) == {
        "mcpServers": {"termsprawl": {"command": home.ctl, "args": ["mcp", "--session", home.session]}}
    }
    assert "nothing was written" in shown.stderr
    assert str(home.folder / ".cursor" / "mcp.json") in shown.stderr
    assert not (home.folder / ".cursor").exists()
    assert "claude mcp add termsprawl --scope user -- " in home.install("claude").stderr


def test_a_server_that_does_not_answer_is_told_with_its_own_words(home, app):
    app.replies["session_info"] = {"ok": False, "error": "Unknown or revoked session"}
    done = home.install("cursor", "--write", status=1)
    assert "it is written, but does not answer: Unknown or revoked session" in done.stderr
    app.stop()
    done = home.install("cursor", "--write", status=1)
    assert "nothing listens on" in done.stderr


def test_only_an_absolute_home_directory_counts(home):
    for value in ("", "relative"):
        assert "HOME is not set" in home.install("cursor", status=2, HOME=value).stderr


def test_a_folder_that_cannot_be_written_to_is_told(home):
    home.put(".cursor", "a file where the folder should be")
    assert "cannot" in home.install("cursor", "--write", status=1).stderr


def test_uninstalling_what_is_not_there_is_no_error(home):
    path = home.put(".cursor/mcp.json", CURSOR)
    assert "no server termsprawl" in home.uninstall("cursor", "--write").stderr
    assert path.read_text() == CURSOR
    assert json.loads(home.uninstall("zed", "--json").stdout)["action"] == "absent"


def test_a_relative_path_to_the_program_becomes_absolute(home):
    done = subprocess.run(
        [os.path.relpath(home.ctl, home.project), "install", "cursor", "--session", "s.json", "--json"],
        env=home.env,
        cwd=home.project,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["argv"] == [home.ctl, "mcp", "--session", str(home.project / "s.json")]


def test_quiet_says_only_what_went_wrong(home, app):
    assert home.install("cursor", "--write", "-q").stderr == ""
    assert home.uninstall("cursor", "--write", "--quiet").stderr == ""
    app.stop()
    assert "does not answer" in home.install("cursor", "--write", "-q", status=1).stderr


def test_of_two_changes_at_the_same_moment_none_takes_out_the_other(tmp_path, monkeypatch):
    path = tmp_path / "config"
    path.write_text("old")
    first, second = (ConfigFile(str(path), private=True) for _ in range(2))
    stands = threading.Event()  # the second one waits, or has written
    refusals: list[CtlError] = []
    looks: list[str] = []
    look = first._check_unchanged

    def other() -> None:
        try:
            second.write("second", backed_up=True)
        except CtlError as refused:
            refusals.append(refused)
        stands.set()

    def last_look() -> None:
        look()
        looks.append("unchanged")
        if len(looks) == 2:  # the next step puts the new file there
            thread.start()
            assert stands.wait(20)

    pause = time.sleep
    monkeypatch.setattr(time, "sleep", lambda duration_s: (stands.set(), pause(duration_s)))
    monkeypatch.setattr(first, "_check_unchanged", last_look)
    thread = threading.Thread(target=other)
    first.write("first", backed_up=True)
    thread.join(20)
    assert path.read_text() == "first"
    assert "was changed by another program meanwhile" in str(refusals[0])
    assert sorted(os.listdir(tmp_path)) == ["config", "config.termsprawlctl-backup"]


def test_one_that_stands_still_in_the_middle_keeps_nobody_out_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(configfile, "TURN_WAIT_S", 0.05)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    ConfigFile(str(tmp_path / "config"), private=True).write("new", backed_up=True)
    os.close(descriptor)
    assert (tmp_path / "config").read_text() == "new"


def test_folders_that_were_made_for_a_file_go_with_it(home):
    path = home.folder / ".config" / "Code" / "User" / "mcp.json"
    (home.folder / ".config").mkdir()
    home.install("vscode", "--write", "--no-verify")
    assert path.is_file()
    home.uninstall("vscode", "--write")
    assert [one.name for one in home.folder.iterdir() if one.name != "project"] == [".config"]
    assert list((home.folder / ".config").iterdir()) == []


def test_a_folder_that_was_there_or_holds_something_else_stays(home):
    (home.folder / ".cursor").mkdir()
    home.install("cursor", "--write", "--no-verify")
    home.uninstall("cursor", "--write")
    assert list((home.folder / ".cursor").iterdir()) == []
    home.install("windsurf", "--write", "--no-verify")
    other = home.put(".codeium/other", "text")
    home.uninstall("windsurf", "--write")
    assert sorted(one.name for one in (home.folder / ".codeium").iterdir()) == ["other"]
    assert other.read_text() == "text"


@pytest.mark.parametrize("count", ["99", "-1", "9" * 1000, "text", ""])
def test_a_count_of_folders_that_somebody_else_wrote_removes_nothing_that_is_in_use(home, count):
    home.install("windsurf", "--write", "--no-verify")
    home.put(".codeium/windsurf/mcp_config.json.termsprawlctl-folders", count)
    home.uninstall("windsurf", "--write")
    assert home.project.is_dir()


def test_a_read_only_file_is_changed_and_that_is_told(home):
    path = home.put(".cursor/mcp.json", CURSOR)
    path.chmod(0o444)
    assert "read-only" in home.install("cursor", "--write", "--no-verify").stderr
    assert path.stat().st_mode & 0o777 == 0o444
    assert "read-only" in home.uninstall("cursor", "--write").stderr
    assert path.read_text() == CURSOR
    assert "read-only" not in home.uninstall("cursor", "--write").stderr
