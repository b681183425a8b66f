"""Where the app listens and what opens it: two files, neither of them trusted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.scripted_server import ScriptedServer, Trap, answer, replying
from support.session_files import TOKEN, SessionFiles

from termsprawlctl.app import discovery, transport

# PORT stands for the port that a trap listens on: whoever reads one of these more
# kindly than we do, and connects, walks into it.
TAMPERED = [
    "",
    " ",
    "http://localhost:PORT/call",
    "http://LOCALHOST:PORT/call",
    "http://[::1]:PORT/call",
    "http://[::ffff:127.0.0.1]:PORT/call",
    "http://127.1:PORT/call",
    "http://127.0.1:PORT/call",
    "http://127.0.0.2:PORT/call",
    "http://0.0.0.0:PORT/call",
    "http://0:PORT/call",
    "http://0x7f000001:PORT/call",
    "http://0x7f.0.0.1:PORT/call",
    "http://2130706433:PORT/call",
    "http://0177.0.0.1:PORT/call",
    "http://127.000.000.001:PORT/call",
    "http://127.0.0.1.:PORT/call",
    "http://127.0.0.1.evil.com:PORT/call",
    "http://127.0.0.1.nip.io:PORT/call",
    "http://evil.com:PORT/call",
    "http://127.0.0.1:PORT@evil.com/call",
    "http://127.0.0.1:1@evil.com:PORT/call",
    "http://127.0.0.1@evil.com:PORT/call",
    "http://user@127.0.0.1:PORT/call",
    "http://user:secret@127.0.0.1:PORT/call",
    "http://@127.0.0.1:PORT/call",
    "http://:@127.0.0.1:PORT/call",
    "//evil.com/call",
    "//127.0.0.1:PORT/call",
    "/call",
    "127.0.0.1:PORT/call",
    "https://127.0.0.1:PORT/call",
    "HTTP://127.0.0.1:PORT/call",
    "Http://127.0.0.1:PORT/call",
    "http:127.0.0.1:PORT/call",
    "http:/127.0.0.1:PORT/call",
    "http:///127.0.0.1:PORT/call",
    "ws://127.0.0.1:PORT/call",
    "file:///call",
    "http+unix://127.0.0.1:PORT/call",
    "javascript:http://127.0.0.1:PORT/call",
    "http://127.0.0.1/call",
    "http://127.0.0.1:/call",
    "http://127.0.0.1:0/call",
    "http://127.0.0.1:65536/call",
    "http://127.0.0.1:99999/call",
    "http://127.0.0.1:100080/call",
    "http://127.0.0.1:-1/call",
    "http://127.0.0.1:+PORT/call",
    "http://127.0.0.1: PORT/call",
    "http://127.0.0.1:PORT /call",
    "http://127.0.0.1:0xff/call",
    "http://127.0.0.1:8e3/call",
    "http://127.0.0.1:8_0/call",
    "http://127.0.0.1:\u0661\u0662\u0663/call",
    "http://127.0.0.1:\uff18\uff10/call",
    "http://127.0.0.1:\u00b2/call",
    "http://\uff11\uff12\uff17.0.0.1:PORT/call",
    "http://127\u30020\u30020\u30021:PORT/call",
    "http://127.0.0.1:PORT",
    "http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/calls",
    "http://127.0.0.1:PORT/call/",
    "http://127.0.0.1:PORT/CALL",
    "http://127.0.0.1:PORT//call",
    "http://127.0.0.1:PORT/./call",
    "http://127.0.0.1:PORT/x/../call",
    "http://127.0.0.1:PORT/%63all",
    "http://127.0.0.1:PORT/call%00",
    "http://127.0.0.1:PORT/call;x",
    "http://127.0.0.1:PORT/call#fragment",
    "http://127.0.0.1:PORT/call?a#fragment",
    "http://127.0.0.1:PORT/call?a b",
    "http://127.0.0.1:PORT/call?\u00e9",
    "http://127.0.0.1:PORT/call?a\r\nx-injected: 1",
    "http://127.0.0.1:PORT/call?\x00",
    "http://127.0.0.1:PORT/call?\x7f",
    "http://127.0.0.1:PORT/call?a\\b",
    "http://127.0.0.1:PORT\\call",
    "http:\\\\127.0.0.1:PORT\\call",
    "http://127.0.0.1\\@evil.com:PORT/call",
    "http://127.0.0.1:PORT/call\n",
    "\nhttp://127.0.0.1:PORT/call",
    " http://127.0.0.1:PORT/call",
    "http://127.0.0.1:PORT/call ",
    "http://127.0.0.1:PORT/call\r\n",
    "http://127.0.0.1\t:PORT/call",
    "ht\ntp://127.0.0.1:PORT/call",
    "http://127.0.0.1\x00.evil.com:PORT/call",
    "\ufeffhttp://127.0.0.1:PORT/call",
    None,
    7,
    True,
    [],
    ["http://127.0.0.1:PORT/call"],
    {"href": "http://127.0.0.1:PORT/call"},
]


def failure(reason: str) -> dict:
    return {
        "ok": False,
        "error": f"Tool connection unavailable: {reason}. Check that termsprawl is running. "
        "Mutations are not automatically retried.",
    }


@pytest.mark.parametrize("url", TAMPERED, ids=ascii)
def test_a_tampered_endpoint_is_refused_before_a_byte_is_sent(tmp_path, monkeypatch, url):
    def no_socket(*_args, **_options):
        raise AssertionError("a socket was made")

    with Trap() as trap:
        files = SessionFiles(tmp_path, url=json.loads(json.dumps(url).replace("PORT", str(trap.port))))
        monkeypatch.setattr(transport.socket, "socket", no_socket)
        monkeypatch.setattr(transport.socket, "getaddrinfo", no_socket)
        result = transport.call(str(files.session), "session_info")
        assert trap.untouched()
    assert result == failure("Invalid local endpoint")


@pytest.mark.parametrize(
    ("url", "port", "target"),
    [
        ("http://127.0.0.1:1/call", 1, "/call"),
        ("http://127.0.0.1:65535/call", 65535, "/call"),
        ("http://127.0.0.1:08080/call", 8080, "/call"),
        ("http://127.0.0.1:80/call?", 80, "/call?"),
        ("http://127.0.0.1:80/call?a=1&b=%20", 80, "/call?a=1&b=%20"),
        ("http://127.0.0.1:80/call?http://evil.com@x", 80, "/call?http://evil.com@x"),
        ('http://127.0.0.1:80/call?q="<>|^`{}~!$', 80, '/call?q="<>|^`{}~!$'),
    ],
)
def test_the_apps_form_is_taken_apart(url, port, target):
    assert discovery.parse_endpoint(url) == (port, target)


def test_the_endpoint_file_lies_two_folders_up():
    assert discovery.endpoint_file("/d/agent-tools/sessions/n.json") == "/d/agent-tools/endpoint.json"
    assert discovery.endpoint_file("/n.json") == "/endpoint.json"


def test_a_relative_session_path_counts_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert discovery.endpoint_file("n.json") == str(tmp_path.parent / "endpoint.json")
    with ScriptedServer(replying(answer({"ok": True}))) as server:
        SessionFiles(tmp_path, server.port)
        assert transport.call("agent-tools/sessions/agent-1.json") == {"ok": True}


@pytest.mark.parametrize(
    ("option", "environment", "chosen"),
    [
        (None, {}, None),
        (None, {"TERMSPRAWL_SESSION_FILE": ""}, None),
        (None, {"TERMSPRAWL_SESSION_FILE": "/e"}, "/e"),
        ("/o", {"TERMSPRAWL_SESSION_FILE": "/e"}, "/o"),
        ("/o", {}, "/o"),
        ("", {"TERMSPRAWL_SESSION_FILE": "/e"}, None),
    ],
)
def test_the_option_wins_over_the_environment(option, environment, chosen):
    assert discovery.session_file(option, environment) == chosen


# The token


@pytest.mark.parametrize(
    "token",
    [
        f"{TOKEN}\r\nx-injected: 1",
        f"{TOKEN}\n",
        f"\r{TOKEN}",
        f"{TOKEN}\x00",
        f"{TOKEN} {TOKEN}",
        f"{TOKEN}\t",
        f"{TOKEN}é",
        f"{TOKEN}ключ",
        f"{TOKEN}\x7f",
        f"{TOKEN}\ud800",
    ],
    ids=ascii,
)
def test_a_token_that_no_header_can_carry_is_never_sent_or_shown(tmp_path, token):
    with Trap() as trap:
        files = SessionFiles(tmp_path, trap.port, token=token)
        result = transport.call(str(files.session))
        assert trap.untouched()
    assert result == failure(f"the token in the session file {files.session} cannot be sent in an HTTP header")


@pytest.mark.parametrize("token", ["", None, 5, True, [TOKEN], {"token": TOKEN}], ids=repr)
def test_a_session_without_a_token_is_a_failure(tmp_path, token):
    with Trap() as trap:
        files = SessionFiles(tmp_path, trap.port, token=token)
        result = transport.call(str(files.session))
        assert trap.untouched()
    assert result == failure(f"the session file {files.session} holds no token")


def test_a_session_file_needs_nothing_but_its_token(tmp_path):
    with ScriptedServer(replying(answer({"ok": True}))) as server:
        files = SessionFiles(tmp_path, server.port)
        files.session.write_text(json.dumps({"token": TOKEN}))
        files.endpoint.write_text(json.dumps({"url": f"http://127.0.0.1:{server.port}/call", "more": [1]}))
        assert transport.call(str(files.session)) == {"ok": True}


# The files


def missing(path: Path) -> None:
    path.unlink()


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def too_large(path: Path) -> None:
    path.write_text(path.read_text() + " " * (1 << 20))


def empty(path: Path) -> None:
    path.write_text("")


def cut_short(path: Path) -> None:
    path.write_text(path.read_text()[:-5])


def no_utf_8(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\xff")


def nested_deep(path: Path) -> None:
    path.write_text('{"token": ' + "[" * 100_000 + "]" * 100_000 + "}")


def an_array(path: Path) -> None:
    path.write_text(f'["{TOKEN}"]')


def a_string(path: Path) -> None:
    path.write_text(f'"{TOKEN}"')


FILE_FAULTS = {
    missing: "cannot read the WHAT PATH: No such file or directory",
    a_directory: "cannot read the WHAT PATH: it is a directory",
    a_fifo: "cannot read the WHAT PATH: not a regular file",
    a_device: "cannot read the WHAT PATH: not a regular file",
    a_loop: "cannot read the WHAT PATH: Too many levels of symbolic links",
    too_large: "cannot read the WHAT PATH: larger than 1048576 bytes",
    empty: "the WHAT PATH is not JSON: ",
    cut_short: "the WHAT PATH is not JSON: ",
    no_utf_8: "the WHAT PATH is not JSON: not UTF-8",
    nested_deep: "the WHAT PATH is not JSON: nested too deep",
    an_array: "the WHAT PATH is not a JSON object",
    a_string: "the WHAT PATH is not a JSON object",
}


@pytest.mark.parametrize("which", ["session", "endpoint"])
@pytest.mark.parametrize("spoil", FILE_FAULTS, ids=lambda spoil: spoil.__name__)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path, which, spoil):
    with Trap() as trap:
        files = SessionFiles(tmp_path, trap.port)
        path = getattr(files, which)
        spoil(path)
        result = transport.call(str(files.session), "session_info")
        assert trap.untouched()
    assert list(result) == ["ok", "error"]
    reason = FILE_FAULTS[spoil].replace("WHAT", f"{which} file").replace("PATH", str(path))
    assert result["error"].startswith(f"Tool connection unavailable: {reason}")
    assert result["error"].endswith(". Check that termsprawl is running. Mutations are not automatically retried.")
    assert TOKEN not in result["error"]


@pytest.mark.parametrize("which", ["session", "endpoint"])
def test_a_file_that_may_not_be_read_is_named_with_the_reason(ctl, hermetic_env, which):
    # root may read everything, so root asks as somebody else.
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder, Trap() as trap:
        root = Path(folder)
        root.chmod(0o755)
        program = root / "termsprawlctl"
        program.write_bytes(Path(ctl).read_bytes())
        program.chmod(0o755)
        files = SessionFiles(root, trap.port)
        files.session.chmod(0o644)
        files.endpoint.chmod(0o644)
        getattr(files, which).chmod(0o000)
        python = "/usr/bin/python3" if other else None
        if python and not os.access(python, os.X_OK):
            pytest.skip("no python3 outside root's own folders")
        env = hermetic_env | ({"PATH": "/usr/bin:/bin"} if other else {})
        done = subprocess.run(
            [str(program), "--session", str(files.session), "doctor"],
            env=env,
            cwd="/",
            capture_output=True,
            check=False,
            **other,
        )
        assert trap.untouched()
    reason = f"cannot read the {which} file {getattr(files, which)}: Permission denied"
    assert (done.returncode, done.stderr) == (1, b"")
    assert json.loads(done.stdout) == failure(reason)


@pytest.mark.parametrize(
    "path", ["", "/", ".", "\0", "a\0b", "/proc/self/mem", "/dev/fd/9", "x" * 5000, "\udcff", "a\nb"], ids=ascii
)
def test_any_path_for_a_session_is_a_failure_and_no_exception(path):
    result = transport.call(path, "session_info")
    assert result["ok"] is False
    assert re.match(r"Tool connection unavailable: (cannot read the|the) session file", result["error"])
