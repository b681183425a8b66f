"""The command line from outside: the built file in a process with an empty environment."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import termios
import threading

import pytest
from support.command import NO_SESSION, USAGE_START, checked, run
from support.scripted_server import ScriptedServer, Trap, answer, replying, unused_port
from support.session_files import TOKEN, SessionFiles
from support.waiting import until

from termsprawlctl.cli import parser
from termsprawlctl.operations import guides
from termsprawlctl.operations.table import OPERATIONS

GOOD = {"ok": True, "value": {"text": "é😀\u2028", "list": [1, {}], "n": 1.5}}
GOOD_TEXT = """\
{
  "ok": true,
  "value": {
    "text": "é😀\u2028",
    "list": [
      1,
      {}
    ],
    "n": 1.5
  }
}
"""
BAD = {"ok": False, "error": "Missing argument: nodeId"}
BAD_TEXT = '{\n  "ok": false,\n  "error": "Missing argument: nodeId"\n}\n'


@pytest.fixture
def app(tmp_path):
    """An app that answers every call with `app.result`; its requests are kept."""

    def script(connection):
        connection.read_request()
        connection.send(answer(server.result) if not isinstance(server.result, bytes) else server.result)

    with ScriptedServer(script) as server:
        server.result = GOOD
        server.files = SessionFiles(tmp_path, server.port)
        server.session = str(server.files.session)
        yield server


@pytest.fixture
def env(app, hermetic_env):
    return hermetic_env | {"TERMSPRAWL_SESSION_FILE": app.session}


# doctor and call, as the contract has them


def test_doctor_prints_session_info(app, ctl, env):
    done = run([ctl, "doctor"], env)
    assert (done.status, done.out.decode(), done.err) == (0, GOOD_TEXT, b"")
    assert [request.json for request in app.requests] == [{"operation": "session_info", "args": {}}]


@pytest.mark.parametrize("words", [["doctor"], ["call", "terminal_read"]])
def test_a_no_of_the_tool_goes_to_stdout_with_status_1(app, ctl, env, words):
    app.result = BAD
    done = run([ctl, *words], env)
    assert (done.status, done.out.decode(), done.err) == (1, BAD_TEXT, b"")


@pytest.mark.parametrize("words", [["doctor"], ["call", "terminal_read", "{}"]])
def test_an_app_that_is_not_there_is_a_no_too(app, ctl, env, words):
    port = unused_port()
    app.files.write_endpoint(port)
    done = run([ctl, *words], env)
    assert (done.status, done.err) == (1, b"")
    assert done.out.decode() == (
        '{\n  "ok": false,\n  "error": "Tool connection unavailable: nothing listens on '
        f"127.0.0.1:{port} (connection refused), so {app.files.endpoint} is out of date. "
        'Check that termsprawl is running. Mutations are not automatically retried."\n}\n'
    )


def test_a_session_file_that_is_missing_is_a_failure_and_no_wrong_usage(ctl, hermetic_env, tmp_path):
    done = run([ctl, "doctor", "--session", str(tmp_path / "none.json")], hermetic_env)
    assert (done.status, done.err) == (1, b"")
    assert json.loads(done.out)["error"].startswith("Tool connection unavailable: cannot read the session file")


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["canvas_list"], {"operation": "canvas_list", "args": {}}),
        (["canvas_list", "{}"], {"operation": "canvas_list", "args": {}}),
        (["canvas_list", ""], {"operation": "canvas_list", "args": {}}),
        (
            ["terminal_read", '{"nodeId": "n", "maxChars": 2e3}'],
            {"operation": "terminal_read", "args": {"nodeId": "n", "maxChars": 2000}},
        ),
        (["sticky_open", '{"text": "é😀\\ud800"}'], {"operation": "sticky_open", "args": {"text": "é😀\ud800"}}),
        (["sticky_open", ' {"a":1} '], {"operation": "sticky_open", "args": {"a": 1}}),
        (["no_such_operation", "{}"], {"operation": "no_such_operation", "args": {}}),
        (["", "{}"], {"operation": "", "args": {}}),
        (["x", "[1]"], {"operation": "x", "args": [1]}),
        (["x", "5"], {"operation": "x", "args": 5}),
        (["x", "-5"], {"operation": "x", "args": -5}),
        (["x", '"a=b"'], {"operation": "x", "args": "a=b"}),
        (["x", "false"], {"operation": "x", "args": False}),
        ([], {"args": {}}),
    ],
    ids=repr,
)
def test_call_sends_what_it_was_given_and_lets_the_app_judge(app, ctl, env, words, body):
    assert run([ctl, "call", *words], env).status == 0
    assert [request.json for request in app.requests] == [body]


def test_json_nested_as_deep_as_allowed_goes_there_and_back(app, ctl, env):
    deep = "[" * 490 + "]" * 490
    app.result = answer(b'{"ok": true, "value": ' + deep.encode() + b"}")
    done = run([ctl, "call", "x", deep], env)
    assert done.status == 0
    assert "".join(done.out.decode().split()) == '{"ok":true,"value":' + deep + "}"
    assert json.dumps(app.requests[0].json["args"]) == deep


def test_a_lone_surrogate_is_printed_as_the_replacement_character(app, ctl, env):
    app.result = answer(b'{"ok": true, "value": "a\\ud800b"}')
    assert run([ctl, "doctor"], env).out.decode() == '{\n  "ok": true,\n  "value": "a\ufffdb"\n}\n'


# Input that is not JSON: nothing is called

NOT_JSON = [
    " ",
    "{",
    "{]",
    "{'a': 1}",
    "{a: 1}",
    '{"a": 1,}',
    '{"a": 1} x',
    "NaN",
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": -Infinity}',
    '{"a": 1e999}',
    '{"a": ' + "9" * 5000 + "}",
    '{"a": "\t"}',
    "[" * 501 + "]" * 501,
    "[" * 50_000 + "]" * 50_000,
    "[" * 50_000,
    '{"a":' * 10_000,
    "nodeId",
    "not json",
]


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: repr(text[:20]))
def test_arguments_that_are_not_json_are_told_on_stderr_and_nothing_is_sent(app, ctl, env, tmp_path, text):
    (tmp_path / "args.json").write_text(text)
    forms = [(["x", text], None), (["x", "-"], text.encode()), (["x", f"@{tmp_path / 'args.json'}"], None)]
    if not text.isspace():
        forms.append((["x", f"value:={text}"], None))
    for words, stdin in forms:
        done = run([ctl, "call", *words], env, stdin=stdin)
        assert (done.status, done.out) == (2, b""), words
        assert re.fullmatch(rb"termsprawlctl: .* is not JSON: .*\n", done.err), done.err
        assert len(done.err) < 400
    assert app.connections == 0


@pytest.mark.parametrize("argument", [b"\xff", b'{"text": "\xff"}', b"text=\xc3", b"@\xff"], ids=repr)
def test_arguments_that_are_not_utf_8_are_refused(app, ctl, env, argument):
    done = run([ctl, "call", "x", argument], env)
    assert (done.status, done.out) == (2, b"")
    assert b"UTF-8" in done.err
    assert app.connections == 0


def test_input_that_is_not_utf_8_is_refused(app, ctl, env, tmp_path):
    (tmp_path / "f").write_bytes(b'{"text": "\xff"}')
    for words in (["-"], [f"@{tmp_path / 'f'}"]):
        done = run([ctl, "call", "x", *words], env, stdin=b'{"text": "\xff"}')
        assert (done.status, done.out) == (2, b"")
        assert b"not UTF-8 at byte 10" in done.err
    assert app.connections == 0


# Beyond the contract: stdin, files and fields


def args_sent(app) -> object:
    (request,) = app.requests
    return request.json["args"]


@pytest.mark.parametrize(("data", "args"), [(b"", {}), (b'{"a": "\xc3\xa9"}\n', {"a": "é"}), (b"\xef\xbb\xbf{}", {})])
def test_a_dash_reads_the_json_from_stdin(app, ctl, env, data, args):
    assert run([ctl, "call", "x", "-"], env, stdin=data).status == 0
    assert args_sent(app) == args


def test_stdin_may_come_in_pieces(app, ctl, env):
    process = subprocess.Popen([ctl, "call", "x", "-"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for piece in (b'{"a"', b": ", b'"b"}'):
        process.stdin.write(piece)
        process.stdin.flush()
    process.communicate(timeout=60)
    assert (process.returncode, args_sent(app)) == (0, {"a": "b"})


def test_a_large_text_goes_through_stdin_and_through_a_file(app, ctl, env, tmp_path):
    # An argument of this size does not fit on a Linux command line.
    args = {"text": "é" * 1_000_000}
    (tmp_path / "args.json").write_text(json.dumps(args))
    assert run([ctl, "call", "x", "-"], env, stdin=json.dumps(args).encode()).status == 0
    assert run([ctl, "call", "x", f"@{tmp_path / 'args.json'}"], env).status == 0
    assert [request.json["args"] == args for request in app.requests] == [True, True]


def test_stdin_is_not_touched_unless_asked_for(app, ctl, env):
    # A terminal or pipe that is never closed would hang a program that reads it.
    for words in (["doctor"], ["call", "x"], ["call", "x", "{}"], ["tools"], ["guide"]):
        reading, writing = os.pipe()
        os.write(writing, b"kept")
        try:
            subprocess.run([ctl, *words], env=env, stdin=reading, capture_output=True, timeout=60, check=True)
            assert os.read(reading, 10) == b"kept"
        finally:
            os.close(reading)
            os.close(writing)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "it is a directory"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (
            lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), (16 << 20) + 1),
            "larger than 16777216 bytes",
        ),
    ],
    ids=["missing", "directory", "fifo", "device", "too large"],
)
def test_a_file_of_arguments_that_cannot_be_read_is_named(app, ctl, env, tmp_path, make, reason):
    path = tmp_path / "é args"
    make(path)
    done = run([ctl, "call", "x", f"@{path}"], env)
    error = f"termsprawlctl: cannot read {path}: {reason}. Name a file that can be read.\n"
    assert (done.status, done.out, done.err.decode()) == (2, b"", error)
    assert app.connections == 0


def test_too_much_on_stdin_is_refused(app, ctl, env):
    done = run([ctl, "call", "x", "-"], env, stdin=b" " * ((16 << 20) + 1))
    assert (done.status, done.out) == (2, b"")
    assert b"more than 16777216 bytes" in done.err


@pytest.mark.parametrize(
    ("fields", "args"),
    [
        (["nodeId=n1", "x:=20", 'nodeIds:=["a","b"]'], {"nodeId": "n1", "x": 20, "nodeIds": ["a", "b"]}),
        (["text="], {"text": ""}),
        (["text=a=b:=c"], {"text": "a=b:=c"}),
        (["text={}"], {"text": "{}"}),
        (["text=-"], {"text": "-"}),
        (["text=@f"], {"text": "@f"}),
        (["text=1"], {"text": "1"}),
        (["text=two\nlines\t"], {"text": "two\nlines\t"}),
        (["text= é😀 "], {"text": " é😀 "}),
        (["text=--session"], {"text": "--session"}),
        (["text=--help"], {"text": "--help"}),
        (["x:=-1.5e2", "y:=null", "z:=true", 's:=""'], {"x": -150, "y": None, "z": True, "s": ""}),
        (["_a1=b"], {"_a1": "b"}),
    ],
    ids=repr,
)
def test_fields_are_texts_with_one_sign_and_json_with_the_other(app, ctl, env, fields, args):
    assert run([ctl, "call", "x", *fields], env).status == 0
    assert args_sent(app) == args


@pytest.mark.parametrize(
    ("operation", "fields", "args"),
    [
        (
            "terminal_run",
            ["nodeId=7", "command=1", "timeoutMs=1000"],
            {"nodeId": "7", "command": "1", "timeoutMs": 1000},
        ),
        ("canvas_move", ["nodeId=n", "x=-1.5e2", "y=0"], {"nodeId": "n", "x": -150, "y": 0}),
        ("canvas_select", ["nodeIds=n-1,n-2"], {"nodeIds": ["n-1", "n-2"]}),
        ("canvas_select", ["nodeIds=n-1"], {"nodeIds": ["n-1"]}),
        ("canvas_select", ['nodeIds:=["a,b"]'], {"nodeIds": ["a,b"]}),
        ("terminal_wait", ["nodeId=n", "exit=true"], {"nodeId": "n", "exit": True}),
        ("canvas_move", ["nodeId=n", "z=1"], {"nodeId": "n", "z": "1"}),
        ("not_known_yet", ["x=1"], {"x": "1"}),
    ],
    ids=repr,
)
def test_a_field_is_read_as_the_type_that_the_operation_declares(app, ctl, env, operation, fields, args):
    assert run([ctl, "call", operation, *fields], env).status == 0
    assert args_sent(app) == args


@pytest.mark.parametrize(
    ("operation", "field", "said"),
    [
        ("canvas_move", "x=left", "x takes a number, not 'left'. Write it like x=1000."),
        ("canvas_move", "x=", "x takes a number, not ''."),
        ("canvas_move", "x=true", "x takes a number"),
        ("canvas_move", "x=NaN", "x takes a number"),
        ("terminal_wait", "exit=yes", "exit takes true or false, not 'yes'."),
    ],
)
def test_a_field_of_another_type_is_refused_before_anything_is_sent(app, ctl, env, operation, field, said):
    done = run([ctl, "call", operation, "nodeId=n", field], env)
    assert (done.status, done.out) == (2, b"")
    assert said in done.err.decode()
    assert app.connections == 0


@pytest.mark.parametrize("text", ["null", "[]", "0", '""', "false"])
def test_json_that_is_no_object_is_for_the_app_to_refuse(app, ctl, env, text):
    assert run([ctl, "call", "x", text], env).status == 0
    assert args_sent(app) == json.loads(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a=1", "a=2"], "the field a is given twice"),
        (["a=1", "a:=2"], "the field a is given twice"),
        (["a:="], "the field a has no value after :="),
        (["a:=x"], "the value of a is not JSON"),
        (["a=1", "b"], "'b' is not a field"),
        (["a=1", "{}"], "'{}' is not a field"),
        (["a=1", "-"], "'-' is not a field"),
        (["a=1", "1b=2"], "'1b=2' is not a field"),
        (["{}", "a=1"], "cannot combine"),
        (["{}", "{}"], "cannot combine"),
        (["-", "a=1"], "cannot combine"),
        (["", "a=1"], "cannot combine"),
    ],
    ids=repr,
)
def test_fields_that_make_no_sense_are_refused(app, ctl, env, words, said):
    done = run([ctl, "call", "x", *words], env, stdin=b"{}")
    assert (done.status, done.out) == (2, b"")
    assert said in done.err.decode()
    assert app.connections == 0


# --field


@pytest.mark.parametrize(
    ("field", "printed"),
    [
        ("value.output", "two\nlines é\n"),
        ("value.n", "7\n"),
        ("value.list", '[1,{"a":"é"}]\n'),
        ("value.list.0", "1\n"),
        ("value.list.1.a", "é\n"),
        ("value.none", "null\n"),
        ("value.no", "false\n"),
        ("value.empty", "\n"),
        ("ok", "true\n"),
    ],
)
def test_one_field_is_printed_raw(app, ctl, env, field, printed):
    app.result = {
        "ok": True,
        "value": {"output": "two\nlines é", "n": 7, "list": [1, {"a": "é"}], "none": None, "no": False, "empty": ""},
    }
    done = run([ctl, "call", "x", "--field", field], env)
    assert (done.status, done.out.decode(), done.err) == (0, printed, b"")


@pytest.mark.parametrize(
    "field", ["", ".", "value.", "value.nothing", "value.list.9", "value.list.-1", "value.list.x", "value.n.x", "Value"]
)
def test_a_field_that_is_not_there_is_told_on_stderr(app, ctl, env, field):
    done = run([ctl, "call", "x", "--field", field], env)
    assert (done.status, done.out) == (1, b"")
    assert done.err.decode().startswith(f"termsprawlctl: the result has no {field}: ")


def test_the_field_of_a_refusal_is_its_error_on_stderr(app, ctl, env):
    app.result = BAD
    done = run([ctl, "call", "x", "--field", "value.output"], env)
    assert (done.status, done.out, done.err) == (1, b"", b"termsprawlctl: Missing argument: nodeId\n")
    done = run([ctl, "call", "x", "--field", "error"], env)
    assert (done.status, done.out) == (1, b"Missing argument: nodeId\n")


# --save

PICTURE = bytes(range(256)) * 50


def test_a_picture_is_saved_and_left_out_of_the_output(app, ctl, env, tmp_path):
    app.result = {"ok": True, "value": {"nodeId": "b-1", "image": base64.b64encode(PICTURE).decode()}}
    done = run(
        [ctl, "call", "browser_screenshot", "nodeId=b-1", "--save", "shot é.png"], env, cwd=tmp_path, umask=0o022
    )
    path = tmp_path / "shot é.png"
    assert (done.status, done.err) == (0, b"")
    assert json.loads(done.out) == {"ok": True, "value": {"nodeId": "b-1", "saved": str(path), "bytes": len(PICTURE)}}
    assert path.read_bytes() == PICTURE
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"ok": True, "value": {"nodeId": "b-1"}}, "holds no value.image"),
        ({"ok": True, "value": "text"}, "holds no value.image"),
        ({"ok": True}, "holds no value.image"),
        ({"ok": True, "value": {"image": 5}}, "holds no value.image"),
        ({"ok": True, "value": {"image": "no base64!"}}, "is not base64"),
        ({"ok": True, "value": {"image": "é"}}, "is not base64"),
        (BAD, ""),
    ],
    ids=repr,
)
def test_without_a_picture_the_old_file_stays_and_the_result_is_printed(app, ctl, env, tmp_path, result, said):
    app.result = result
    (tmp_path / "shot.png").write_text("old")
    done = run([ctl, "call", "x", "--save", str(tmp_path / "shot.png")], env)
    assert (done.status, json.loads(done.out)) == (1, result)
    assert said in done.err.decode()
    assert bool(done.err) == bool(said)
    assert (tmp_path / "shot.png").read_text() == "old"


@pytest.mark.parametrize("target", ["", "folder", "none/shot.png", "file/shot.png"])
def test_a_picture_is_not_asked_for_when_there_is_no_place_for_it(app, ctl, env, tmp_path, target):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    done = run([ctl, "call", "x", "--save", target], env, cwd=tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert b"cannot write" in done.err
    assert app.connections == 0


# --session


@pytest.mark.parametrize(
    "words",
    [
        ["--session", "SESSION", "call", "x", "a=1"],
        ["call", "--session", "SESSION", "x", "a=1"],
        ["call", "x", "--session", "SESSION", "a=1"],
        ["call", "x", "a=1", "--session", "SESSION"],
        ["call", "x", "a=1", "--session=SESSION"],
        ["--session", "/none", "call", "x", "a=1", "--session", "SESSION"],
        ["call", "--field", "ok", "--session", "SESSION", "x", "a=1"],
    ],
)
def test_the_session_option_may_stand_anywhere_and_wins_over_the_environment(app, ctl, hermetic_env, words):
    env = hermetic_env | {"TERMSPRAWL_SESSION_FILE": "/none/of/these.json"}
    done = run([ctl, *(word.replace("SESSION", app.session) for word in words)], env)
    assert (done.status, done.err) == (0, b"")
    assert [request.json for request in app.requests] == [{"operation": "x", "args": {"a": "1"}}]


@pytest.mark.parametrize("words", [["doctor"], ["call", "x"], ["call"], ["call", "x", "a=1", "--field", "ok"], ["mcp"]])
@pytest.mark.parametrize("variable", [{}, {"TERMSPRAWL_SESSION_FILE": ""}])
def test_without_a_session_the_one_line_says_so(ctl, hermetic_env, words, variable):
    done = run([ctl, *words], hermetic_env | variable)
    assert (done.status, done.out, done.err) == (2, b"", NO_SESSION)


def test_a_session_option_that_is_empty_does_not_fall_back_to_the_environment(app, ctl, env):
    done = run([ctl, "doctor", "--session", ""], env)
    assert (done.status, done.out, done.err) == (2, b"", NO_SESSION)
    assert app.connections == 0


# Usage


@pytest.mark.parametrize(
    "words",
    [
        [],
        [""],
        ["Doctor"],
        ["doc"],
        ["docto\nr"],
        ["é"],
        ["-x"],
        ["--"],
        ["--", "doctor"],
        ["--session"],
        ["doctor", "--session"],
        ["call", "x", "{}", "--session"],
        ["--json"],
    ],
    ids=repr,
)
def test_anything_else_is_answered_with_the_usage(app, ctl, env, words):
    done = run([ctl, *words], env)
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith(USAGE_START)
    assert app.connections == 0


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "x"],
        ["doctor", "--bogus"],
        ["call", "x", "--bogus"],
        ["call", "x", "--fiel", "ok"],
        ["call", "x", "--field"],
        ["call", "x", "--save"],
        ["tools", "x", "y"],
        ["guide", "x", "y"],
        ["mcp", "x"],
    ],
    ids=repr,
)
def test_words_that_a_command_does_not_know_are_answered_with_its_usage(app, ctl, env, words):
    done = run([ctl, *words], env)
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith(b"Usage: termsprawlctl " + words[0].encode())
    assert b"--help" in done.err
    assert app.connections == 0


@pytest.mark.parametrize("words", [[], ["doctor"], ["call"], ["tools"], ["guide"], ["mcp"], ["host"], ["external"]])
def test_help_and_version_need_no_session(ctl, hermetic_env, words):
    for option in ("--help", "-h"):
        done = run([ctl, *words, option], hermetic_env)
        assert (done.status, done.err) == (0, b"")
        assert done.out.lower().startswith(b"usage: termsprawlctl " + b" ".join(word.encode() for word in words))
    done = run([ctl, *words, "--version"], hermetic_env)
    assert (done.status, done.err) == (0, b"")
    assert re.fullmatch(rb"termsprawlctl \d+\.\d+\.\d+\n", done.out)


def test_the_help_names_every_command_and_the_exit_statuses(ctl, hermetic_env):
    text = run([ctl, "--help"], hermetic_env).out.decode()
    for word in (*parser.COMMANDS, "--session", "TERMSPRAWL_SESSION_FILE", "exit status"):
        assert word in text


# tools and guide: no session, no server


def test_the_table_is_printed_for_people_and_as_json(ctl, hermetic_env):
    text = run([ctl, "tools"], hermetic_env).out.decode()
    table = json.loads(run([ctl, "tools", "--json"], hermetic_env).out)
    assert [tool["name"] for tool in table] == [line.split()[0] for line in text.splitlines()]
    assert [tool["name"] for tool in table] == list(OPERATIONS)
    assert max(map(len, text.splitlines())) < 180


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_each_operation_is_explained(ctl, hermetic_env, name):
    text = run([ctl, "tools", name], hermetic_env).out.decode()
    schema = json.loads(run([ctl, "tools", name, "--json"], hermetic_env).out)["inputSchema"]
    assert text.startswith(name)
    for argument, details in schema["properties"].items():
        need = "required" if argument in schema.get("required", []) else "optional"
        assert re.search(rf"^  {argument} .*{need}", text, re.MULTILINE)
        assert all(choice in text for choice in details.get("enum", []))


def test_an_operation_that_is_not_in_the_table_is_answered_with_the_nearest(ctl, hermetic_env):
    done = run([ctl, "tools", "terminal_reed"], hermetic_env)
    assert (done.status, done.out) == (2, b"")
    assert b"terminal_read" in done.err


@pytest.mark.parametrize("topic", guides.TOPICS)
def test_each_guide_is_printed_as_it_is(ctl, hermetic_env, topic):
    done = run([ctl, "guide", topic], hermetic_env)
    assert (done.status, done.out.decode(), done.err) == (0, guides.read(topic), b"")


def test_the_overview_is_the_guide_to_begin_with(ctl, hermetic_env):
    assert run([ctl, "guide"], hermetic_env).out.decode() == guides.read("overview")


def test_a_guide_that_there_is_not_is_answered_with_the_topics(ctl, hermetic_env):
    done = run([ctl, "guide", "../guides/overview"], hermetic_env)
    assert (done.status, done.out) == (2, b"")
    assert all(topic in done.err.decode() for topic in guides.TOPICS)


# Standard streams of every kind


def shell(command: str, ctl: str, env: dict) -> subprocess.CompletedProcess:
    """A line of shell in which $CTL is the built file; pipefail shows its status too."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=env | {"CTL": ctl},
        capture_output=True,
        check=False,
        timeout=60,
    )
    checked(done.stdout, done.stderr)
    return done


def test_a_reader_that_has_seen_enough_ends_it_quietly(app, ctl, env):
    app.result = {"ok": True, "value": ["line"] * 300_000}
    done = shell('"$CTL" doctor | head -1', ctl, env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{\n", b"")
    done = shell('"$CTL" tools | true; "$CTL" guide | true; "$CTL" --help | true', ctl, env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_closed_pipe_on_stderr_ends_it_quietly_too(app, ctl, env):
    done = shell('"$CTL" nonsense 2>&1 >/dev/null | true; echo "${PIPESTATUS[0]}"', ctl, env)
    assert (done.stdout, done.stderr) == (b"2\n", b"")


def test_a_slow_reader_gets_all_of_a_large_result(app, ctl, env):
    app.result = {"ok": True, "value": "é" * 5_000_000}
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    # Non-blocking, as some parents leave their pipes: a full pipe is no error.
    os.set_blocking(writing, False)
    process = subprocess.Popen(
        [ctl, "doctor"], env=env, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    received = bytearray()
    while chunk := os.read(reading, 65536):
        received += chunk
    os.close(reading)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(received) == app.result


def test_a_full_disk_is_told(app, ctl, env):
    done = shell('"$CTL" doctor > /dev/full', ctl, env)
    assert (done.returncode, done.stderr) == (
        1,
        b"termsprawlctl: cannot write to standard output: No space left on device. Send it elsewhere.\n",
    )
    assert shell('"$CTL" --help > /dev/full', ctl, env).returncode == 1
    assert shell('"$CTL" nonsense 2> /dev/full', ctl, env).returncode == 2


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_never_become_the_connection(app, ctl, env, redirections):
    # Descriptor 1 free, the next socket would get it, and the result would be sent to the app.
    done = shell(f'"$CTL" call x a=1 {redirections}', ctl, env)
    assert done.returncode == 0
    assert done.stdout in (b"", GOOD_TEXT.encode())
    assert (done.stdout == b"") == (">&-" in redirections.replace("2>&-", ""))
    (request,) = app.requests
    assert request.json == {"operation": "x", "args": {"a": "1"}}


def test_a_dash_with_a_closed_stdin_is_an_empty_input(app, ctl, env):
    assert shell('"$CTL" call x - <&-', ctl, env).returncode == 0
    assert args_sent(app) == {}


def test_a_dash_with_a_stdin_that_cannot_be_read_is_refused(app, ctl, env):
    done = shell('"$CTL" call x - 0> /dev/null', ctl, env)
    assert (done.returncode, done.stdout) == (2, b"")
    error = b"termsprawlctl: cannot read standard input: Bad file descriptor. Pass them in a file with @FILE.\n"
    assert done.stderr == error
    assert app.connections == 0


# Locales


@pytest.fixture(scope="session")
def latin_1(tmp_path_factory):
    """The variables of a real Latin-1 locale, compiled for the test."""
    if not shutil.which("localedef"):
        pytest.skip("no localedef to make a Latin-1 locale with")
    folder = tmp_path_factory.mktemp("locale")
    made = subprocess.run(
        ["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(folder / "en_US.ISO-8859-1")],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"localedef makes no Latin-1 locale: {made.stderr.decode().strip()}")
    return {"LOCPATH": str(folder), "LC_ALL": "en_US.ISO-8859-1"}


@pytest.mark.parametrize(
    "locale",
    [
        {},
        {"LANG": "C"},
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "xx_YY.nothing"},
        {"LC_ALL": ""},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LATIN": "1"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("how", ["itself", "python3"])
def test_in_and_output_are_utf_8_in_every_locale(app, ctl, env, tmp_path, request, locale, how):
    chosen = request.getfixturevalue("latin_1") if "LATIN" in locale else locale
    root = tmp_path / "ordner é😀"
    files = SessionFiles(root, app.port)
    (root / "args é.json").write_text('{"text": "é😀"}')
    program = [ctl] if how == "itself" else ["python3", ctl]
    env = {"PATH": env["PATH"]} | chosen
    for words in (["text=é😀"], [f"@{root}/args é.json"]):
        done = run([*program, "call", "é😀", *words, "--session", str(files.session)], env)
        assert (done.status, done.out.decode(), done.err) == (0, GOOD_TEXT, b"")
    assert [request.json for request in app.requests] == [{"operation": "é😀", "args": {"text": "é😀"}}] * 2
    done = run([*program, "guide", "é😀"], env)
    assert (done.status, "é😀" in done.err.decode()) == (2, True)
    done = run([*program, "doctor"], env | {"TERMSPRAWL_SESSION_FILE": f"{root}/none.json"})
    assert f"{root}/none.json" in done.out.decode()


# Signals


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
@pytest.mark.parametrize("words", [["doctor"], ["call", "x", "{}"]])
def test_a_signal_during_a_call_ends_it_at_once_and_without_a_traceback(
    tmp_path, ctl, hermetic_env, words, number, status
):
    arrived = threading.Event()

    def script(connection):
        connection.read_request()
        arrived.set()
        connection.wait_for_hangup()

    with ScriptedServer(script) as server:
        files = SessionFiles(tmp_path, server.port)
        process = subprocess.Popen(
            [ctl, *words, "--session", str(files.session)],
            env=hermetic_env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert arrived.wait(60)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (status, b"", b"")


def test_ctrl_c_while_stdin_is_read_ends_it_with_130(ctl, hermetic_env):
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [ctl, "call", "x", "-", "--session", "/none"],
        env=hermetic_env,
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(writing, b"{")
    wait_until_empty(reading)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(reading)
    os.close(writing)
    assert (process.returncode, out, err) == (130, b"", b"")


def wait_until_empty(pipe: int) -> None:
    """Until somebody has read what was in the pipe."""
    until(lambda: not struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0], "a reader")


# Secrets


def test_the_token_is_in_no_argument_and_no_environment(tmp_path, ctl, hermetic_env):
    seen = []

    def script(connection):
        connection.read_request()
        for name in ("cmdline", "environ"):
            with open(f"/proc/{process.pid}/{name}", "rb") as file:
                seen.append(file.read())
        connection.send(answer(GOOD))

    if not os.path.isdir("/proc/self"):
        pytest.skip("no /proc to look into")
    with ScriptedServer(script) as server:
        files = SessionFiles(tmp_path, server.port)
        process = subprocess.Popen(
            [ctl, "doctor", "--session", str(files.session)], env=hermetic_env, stdout=subprocess.PIPE
        )
        process.communicate(timeout=60)
    assert len(seen) == 2
    assert not [text for text in seen if TOKEN.encode() in text]


@pytest.mark.parametrize(
    "data",
    [
        answer({"ok": False, "error": f"no such token: {TOKEN}"}),
        answer({"ok": True, "value": {"authorization": f"Bearer {TOKEN}"}}),
        answer(f"not JSON {TOKEN}".encode()),
        f"HTTP/1.1 {TOKEN}\r\n\r\n".encode(),
        f"{TOKEN}\r\n\r\n".encode(),
        answer(b"", "302 Found", f"location: http://127.0.0.1/{TOKEN}"),
        b"",
    ],
    ids=lambda data: repr(data.replace(TOKEN.encode(), b"TOKEN")[:40]),
)
def test_a_server_cannot_make_us_print_the_token(app, ctl, env, data):
    app.result = data
    done = run([ctl, "doctor"], env)  # run() looks for the token in all output
    assert done.err == b""
    assert json.loads(done.out)


def test_nothing_is_sent_twice(app, ctl, env):
    for result in (b"", b"junk", answer(GOOD)[:-3], answer(GOOD, "301 Moved"), answer({}), answer(BAD, "503 Busy")):
        app.result = result
        assert run([ctl, "call", "terminal_submit", "nodeId=n", "command=x"], env).status == 1
    assert app.connections == len(app.requests) == 6


def test_the_next_call_finds_an_app_that_restarted_on_another_port(app, ctl, env):
    assert run([ctl, "doctor"], env).status == 0
    with ScriptedServer(replying(answer({"ok": True, "value": "after"}))) as restarted:
        app.files.write_endpoint(restarted.port)
        assert json.loads(run([ctl, "doctor"], env).out) == {"ok": True, "value": "after"}


def test_bad_usage_never_reaches_the_network(tmp_path, ctl, hermetic_env):
    with Trap() as trap:
        files = SessionFiles(tmp_path, trap.port)
        env = hermetic_env | {"TERMSPRAWL_SESSION_FILE": str(files.session)}
        for words in (
            [],
            ["x"],
            ["call", "x", "{"],
            ["call", "x", "a:="],
            ["doctor", "x"],
            ["tools", "x"],
            ["guide", "x"],
        ):
            assert run([ctl, *words], env).status == 2
        for words in (["tools"], ["guide"], ["--help"], ["call", "--help"], ["--version"]):
            assert run([ctl, *words], env).status == 0
        assert trap.untouched()


def test_the_shells_own_quoting_of_the_documented_form_works(app, ctl, env):
    # As the guides show it to agents: the helper's path in a variable, JSON in single quotes.
    command = (
        """"$TERMSPRAWL_CTL" call terminal_submit '{"nodeId": "n-7", "command": "make test; echo \\"exit=$?\\""}'"""
    )
    done = shell(command.replace("$TERMSPRAWL_CTL", "$CTL"), ctl, env)
    assert done.returncode == 0
    assert args_sent(app) == {"nodeId": "n-7", "command": 'make test; echo "exit=$?"'}


@pytest.mark.parametrize("kind", ["symlink", "fifo", "device"])
def test_save_writes_through_what_is_no_regular_file(app, ctl, env, tmp_path, kind):
    app.result = {"ok": True, "value": {"image": base64.b64encode(b"picture").decode()}}
    target = tmp_path / "out"
    if kind == "symlink":
        (tmp_path / "real.png").write_bytes(b"old")
        target.symlink_to("real.png")
        assert run([ctl, "call", "x", "--save", str(target)], env).status == 0
        assert target.is_symlink()
        assert (tmp_path / "real.png").read_bytes() == b"picture"
    elif kind == "fifo":
        os.mkfifo(target)
        with subprocess.Popen(["cat", target], stdout=subprocess.PIPE) as reader:
            assert run([ctl, "call", "x", "--save", str(target)], env).status == 0
            assert reader.communicate()[0] == b"picture"
        assert stat.S_ISFIFO(target.stat().st_mode)
    else:
        target.symlink_to("/dev/null")
        assert run([ctl, "call", "x", "--save", str(target)], env).status == 0
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_ctrl_c_while_it_starts_at_a_terminal_prints_no_traceback(ctl, env):
    """At every moment of the start, also in Python's own part of it."""
    outcomes = set()
    for number in range(60):
        outer, inner = os.openpty()
        with subprocess.Popen(
            [ctl, "tools"], env=env, stdin=inner, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            os.close(inner)
            threading.Event().wait(number / 1000)
            child.send_signal(signal.SIGINT)
            said = child.stderr.read()
        os.close(outer)
        assert said == b"", (number, said)
        outcomes.add(child.returncode)
    assert outcomes <= {0, 130, -signal.SIGINT}
