"""`doctor --explain`: the same answer and exit status as ever, and on standard error what was checked and found."""

from __future__ import annotations

import errno
import json
import os
import subprocess

import pytest
from support.command import NO_SESSION, checked, run
from support.node_server import PtyProgram
from support.scripted_server import ScriptedServer, answer, unused_port
from support.seccomp import run_without
from support.session_files import TOKEN, SessionFiles

from termsprawlctl.doctor import checks, connection, session_files, surroundings

INSTANCE = "7b0c1c7e-0000-4000-8000-000000000001"  # what SessionFiles writes
VALUE = {
    "nodeId": "agent-1",
    "projectId": "p-1",
    "instanceId": INSTANCE,
    "appVersion": "1.2.3",
    "status": {"state": "connected", "adapter": "codex-mcp"},
}


@pytest.fixture
def app(tmp_path):
    """An app that answers session_info with `app.result`."""

    def script(server_connection):
        server_connection.read_request()
        server_connection.send(answer(server.result) if not isinstance(server.result, bytes) else server.result)

    with ScriptedServer(script) as server:
        server.result = {"ok": True, "value": dict(VALUE)}
        server.files = SessionFiles(tmp_path, server.port)
        yield server


@pytest.fixture
def explain(app, ctl, hermetic_env):
    """Run it; returns (exit status, stdout, checks by their names)."""

    def ask(*, session: str | None = str(app.files.session), **env: str):
        words = ["--session", session] if session else []
        done = run([ctl, "doctor", "--explain", "--json", *words], {**hermetic_env, **env})
        found = json.loads(done.err)
        for check in found:
            assert set(check) == {"name", "status", "evidence", "cause", "fix"}
            assert check["evidence"]
            assert (check["status"] == "ok") == (check["cause"] == "") == (check["fix"] == "")
        names = [check["name"] for check in found]
        assert len(names) == len(set(names))
        return done.status, done.out, {check["name"]: check for check in found}

    return ask


def statuses(found: dict) -> dict[str, str]:
    return {name: check["status"] for name, check in found.items()}


CONNECTED = ["session", "session file", "session shape", "endpoint file", "endpoint", "connection"]
ANSWERED = ["token", "app", "speed", "node", "integration"]
AROUND = ["sandbox", "proxies", "tmux", "terminals", "program", "locale"]


def test_all_is_well(explain, app, ctl, hermetic_env):
    status, out, found = explain()
    plain = run([ctl, "doctor", "--session", str(app.files.session)], hermetic_env)
    assert (status, out) == (plain.status, plain.out) == (0, plain.out)
    assert list(found) == CONNECTED + ANSWERED + AROUND
    assert {name for name, state in statuses(found).items() if state != "ok"} <= {"terminals"}
    assert str(app.port) in found["endpoint"]["evidence"]
    assert "1.2.3" in found["app"]["evidence"]
    assert INSTANCE in found["app"]["evidence"]
    assert len(app.requests) == 2  # one for each run


def test_a_real_host_passes(host):
    done = host.run("doctor", "--explain", "--session", host.session_file)
    assert done.returncode == 0
    text = done.stderr.decode()
    assert "\nfailed" not in text
    assert ", 0 failed" in text
    assert "tmux 3" in text or "tmux" in text


def test_without_explain_nothing_is_said(app, ctl, hermetic_env):
    assert run([ctl, "doctor", "--session", str(app.files.session)], hermetic_env).err == b""


def test_no_session_keeps_its_words_and_its_status(ctl, hermetic_env, explain):
    done = run([ctl, "doctor", "--explain"], hermetic_env)
    assert (done.status, done.out) == (2, b"")
    assert done.err.endswith(NO_SESSION)
    assert b"host start" in done.err
    status, out, found = explain(session=None)
    assert (status, out, list(found)) == (2, b"", ["session", *AROUND])
    assert found["session"]["status"] == "failed"


def test_a_relative_session_is_a_warning(explain, app, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    _, _, found = explain(session="agent-tools/sessions/agent-1.json")
    assert found["session"]["status"] == "warning"
    assert str(app.files.session) in found["session"]["fix"]


def unwritten(app):
    app.files.session.unlink()


def another_users(app):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    app.files.session.chmod(0)


def no_endpoint(app):
    app.files.endpoint.unlink()


def foreign_endpoint(app):
    app.files.write_endpoint(None, "http://example.com/call")


def stale_endpoint(app):
    app.files.write_endpoint(unused_port())


def revoked(app):
    app.result = {"ok": False, "error": "Unknown or revoked session"}


def no_app(app):
    app.result = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


def refusal(app):
    app.result = {"ok": False, "error": "Out of order"}


FAILURES = [
    (unwritten, "session file", "No such file", "host start", "session file"),
    (another_users, "session file", "Permission denied", "app's user", "session file"),
    (lambda app: app.files.session.write_text("{"), "session file", "not JSON", "host start", "session file"),
    (lambda app: app.files.session.write_text("{}"), "session shape", "no token", "host start", "holds no token"),
    (no_endpoint, "endpoint file", "No such file", "host start", "endpoint file"),
    (lambda app: app.files.endpoint.write_text("[]"), "endpoint file", "not a JSON object", "host start", "endpoint"),
    (foreign_endpoint, "endpoint", "Invalid local endpoint", "host start", "Invalid local endpoint"),
    (stale_endpoint, "connection", "Connection refused", "host start", "nothing listens"),
    (revoked, "token", "Unknown or revoked session", "host start", "Unknown or revoked session"),
    (no_app, "answer", "not JSON", "start the app", "not JSON"),
    (refusal, "answer", "Out of order", "log", "Out of order"),
]


@pytest.mark.parametrize(("spoil", "name", "evidence", "fix", "reason"), FAILURES)
def test_what_fails_is_named_with_cause_and_fix(explain, app, spoil, name, evidence, fix, reason):
    spoil(app)
    status, out, found = explain()
    assert status == 1
    assert reason in json.loads(out)["error"]  # the one error shape has the short form
    failed = [check for check in found.values() if check["status"] == "failed"]
    assert [check["name"] for check in failed] == [name]
    assert evidence in failed[0]["evidence"]
    assert fix in failed[0]["fix"]
    assert set(AROUND) <= set(found)


def test_a_path_that_leads_nowhere_is_one_failure_and_not_two(explain, tmp_path):
    _, _, found = explain(session=str(tmp_path / "no" / "such" / "session.json"))
    assert [name for name, check in found.items() if check["status"] == "failed"] == ["session file"]


@pytest.mark.parametrize(("mode", "who"), [(0o644, "other users"), (0o640, "its group")])
def test_files_that_others_may_read_are_a_warning_with_the_command_that_mends_it(explain, app, mode, who):
    app.files.session.chmod(mode)
    _, _, found = explain()
    check = found["session file"]
    assert (check["status"], who in check["cause"]) == ("warning", True)
    subprocess.run(check["fix"], shell=True, check=True)
    assert explain()[2]["session file"]["status"] == "ok"


WARNINGS = [
    ({"instanceId": "another"}, "app", "restarted"),
    ({"nodeId": "n-9"}, "node", "edited or copied"),
    ({"status": {"state": "needs-setup", "reason": "Set it up"}}, "integration", "Set it up"),
]


@pytest.mark.parametrize(("value", "name", "cause"), WARNINGS)
def test_what_is_odd_in_the_answer_is_a_warning(explain, app, value, name, cause):
    app.result = {"ok": True, "value": {**VALUE, **value}}
    status, _, found = explain()
    assert status == 0
    assert [one for one, check in found.items() if check["status"] == "warning" and one != "terminals"] == [name]
    assert cause in found[name]["cause"]


def test_a_session_file_of_another_shape_is_a_warning(explain, app):
    app.files.session.write_text(json.dumps({"nodeId": "a b", "token": "short-token-1234567"}))
    _, _, found = explain()
    assert found["session shape"]["status"] == "warning"
    assert "projectId" in found["session shape"]["evidence"]
    assert "short-token" not in str(found)


def test_an_app_that_says_little_is_no_warning(explain, app):
    app.result = {"ok": True, "value": {"status": {"state": "connected"}}}
    _, _, found = explain()
    assert [one for one, check in found.items() if check["status"] != "ok" and one != "terminals"] == []


@pytest.mark.parametrize("name", ["socket", "connect"])
def test_a_real_sandbox_is_the_cause_and_not_the_app(app, ctl, hermetic_env, name):
    env = {**hermetic_env, "CODEX_SANDBOX_NETWORK_DISABLED": "1"}
    done = run_without([ctl, "doctor", "--explain", "--json", "--session", app.files.session], env, name)
    checked(done.stdout, done.stderr)
    found = {check["name"]: check for check in json.loads(done.stderr)}
    assert done.returncode == 1
    assert "a sandbox blocks loopback" in json.loads(done.stdout)["error"]
    assert found["connection"]["status"] == "failed"
    assert "a sandbox blocks loopback: Codex without network" in found["connection"]["cause"]
    assert found["sandbox"]["status"] == "warning"
    assert "EPERM" in found["sandbox"]["cause"]


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, "Codex"),
        ({"CODEX_SANDBOX": "seatbelt"}, "Codex"),
        ({"SANDBOX_RUNTIME": "1"}, "Claude Code"),
        ({"FLATPAK_ID": "org.example.App"}, "Flatpak"),
    ],
)
def test_each_sandbox_has_its_remedy(env, name):
    described = surroundings.sandbox(env, exists=lambda _: False)
    assert described.startswith(name)
    blocked = surroundings.check_sandbox(checks.Seen(env, described))
    assert (blocked.status, bool(blocked.cause), bool(blocked.fix)) == (checks.WARNING, True, True)
    assert surroundings.check_sandbox(checks.Seen(env, described, reached=True)).status == checks.OK


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES, errno.ENETUNREACH])
def test_a_blocked_connection_never_says_that_the_app_is_not_running(code):
    check = connection.check_connection(1234, OSError(code, os.strerror(code)), "/e.json", "")
    assert "sandbox" in check.cause
    assert "may well be running" in check.cause


def test_other_faults_of_the_network_have_a_cause_too():
    for error in (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), TimeoutError("timed out")):
        check = connection.check_connection(1234, error, "/e.json", "")
        assert check.status == checks.FAILED
        assert check.evidence.strip(": ")


def test_proxies_are_named_without_their_values_and_are_harmless(explain):
    status, _, found = explain(HTTPS_PROXY="http://user:secret@proxy:1", no_proxy="x")
    assert status == 0
    assert found["proxies"]["status"] == "ok"
    assert "HTTPS_PROXY, no_proxy set; harmless" in found["proxies"]["evidence"]
    assert "secret" not in json.dumps(found)


def test_a_missing_tmux_is_a_warning_only(explain, tmp_path, hermetic_env):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(os.path.join(hermetic_env["PATH"].split(os.pathsep)[0], "python3"))
    status, _, found = explain(PATH=str(folder))
    assert (status, found["tmux"]["status"]) == (0, "warning")
    assert "apt-get install tmux" in found["tmux"]["fix"]
    assert found["terminals"]["evidence"] == "none found"


@pytest.mark.parametrize(
    ("env", "said"), [({}, "not set"), ({"LC_ALL": "C"}, "LC_ALL=C;"), ({"LANG": "de_DE.utf8"}, "LANG=de_DE.utf8")]
)
def test_the_locale_is_told_and_is_harmless(env, said):
    check = surroundings.check_locale(checks.Seen(env))
    assert (check.status, check.evidence.startswith(said)) == (checks.OK, True)


def test_a_slow_app_is_a_warning():
    slow = connection.check_answer({"ok": True, "value": VALUE}, 2500.0, VALUE, {})
    assert [(check.name, check.status) for check in slow if check.status != "ok"] == [("speed", "warning")]


# How it looks


def test_colours_are_for_terminals_and_not_for_those_who_want_none(app, ctl, hermetic_env):
    argv = [ctl, "doctor", "--explain", "--session", str(app.files.session)]
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        program = PtyProgram(argv, {**hermetic_env, **env})
        status, shown = program.ended()
        program.stop()
        assert status == 0
        assert ("\x1b[32mok     \x1b[0m" in shown) == coloured
        assert ("\x1b" in shown) == coloured
    assert b"\x1b" not in run(argv, hermetic_env).err


def test_the_text_shows_every_check_on_a_line_of_its_own():
    found = [checks.ok("a", "fine"), checks.failed("longer name", "broken", "because", "mend it")]
    assert checks.as_text(found, colour=False).splitlines() == [
        "ok       a            fine",
        "failed   longer name  broken",
        "                      cause: because",
        "                      fix: mend it",
        "",
        "2 checks: 1 ok, 0 warning, 1 failed",
    ]


def test_the_token_is_in_none_of_it(explain, app):
    app.result = {"ok": False, "error": f"Bad token {TOKEN}"}
    explain()  # looks itself
    app.result = {"ok": True, "value": VALUE}
    app.files.write_session(TOKEN[:-1] + "!")
    assert TOKEN[:-1] not in json.dumps(explain()[2])


def test_a_file_that_goes_away_meanwhile_is_told(tmp_path, monkeypatch):
    path = SessionFiles(tmp_path, 1).session
    monkeypatch.setattr(session_files, "read_named", lambda *_: (path.unlink(), {})[1])
    (check,) = session_files.check_session_file(str(path))
    assert check.status == checks.FAILED
