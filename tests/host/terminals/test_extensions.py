"""terminal_wait, terminal_since and terminal_send on a running host: only what is new, and nothing typed blindly."""

from __future__ import annotations

import re
import threading

import pytest
from support import chosen
from support.node_server import PtyProgram
from support.terminal_host import start_host
from support.waiting import until

from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.operations import extensions
from termsprawlctl.host.terminals.keys import tmux_keys
from termsprawlctl.operations.schema import InvalidCall, mcp_tool, validate
from termsprawlctl.operations.table import OPERATIONS


def environment() -> dict[str, str]:
    return {"PATH": chosen.plain_path()}


@pytest.fixture(scope="module")
def bash_host(ctl, tmp_path_factory):
    running = start_host(ctl, tmp_path_factory.mktemp("h"), environment(), "bash")
    yield running
    running.stop("--kill-sessions")


@pytest.fixture
def bash(bash_host):
    opened = bash_host.open()
    opened.run("PS1='$ '; printf '\\033[H\\033[2J'")
    yield opened
    opened.call("terminal_close")


def revision(terminal) -> str:
    return terminal.value("terminal_wait", idleMs=150)["cursor"]


# -- terminal_wait


def test_a_wait_looks_from_the_last_thing_that_its_caller_did_there(bash):
    bash.run("echo needle")
    found = bash.value("terminal_wait", text="needle", timeoutMs=0)
    assert (found["reason"], found["match"]) == ("text", "needle")
    bash.value("terminal_submit", command="echo hay")
    assert bash.value("terminal_wait", text="needle", timeoutMs=300)["reason"] == "timeout"
    assert bash.value("terminal_wait", pattern="n..dle", timeoutMs=300)["reason"] == "timeout"
    bash.type("echo need'le'\r")
    bash.wait_for("\nneedle\n$ echo hay")
    until(lambda: bash.screen().splitlines().count("needle") == 2, "the output")
    for condition in ({"text": "needle"}, {"pattern": "^n..dle$"}):
        assert bash.value("terminal_wait", timeoutMs=0, **condition)["match"] == "needle"


def test_a_wait_looks_from_a_cursor_on(bash):
    first = bash.run("echo needle")["cursor"]
    bash.run("echo hay")
    assert bash.value("terminal_wait", text="needle", cursor=first, timeoutMs=200)["reason"] == "timeout"
    assert bash.value("terminal_wait", text="hay", cursor=first, timeoutMs=0)["match"] == "echo hay"
    for wrong in ("", "x", "00000000.1", first + "999999999"):
        assert "That cursor is of an earlier host" in bash.refusal("terminal_wait", text="x", cursor=wrong)


def test_what_ended_between_two_calls_is_not_missed(bash):
    gate = bash.host.project / "gate-late"
    done = bash.run(f"while ! test -e {gate}; do sleep 0.05; done; echo over; (exit 5)", timeoutMs=0)
    assert done["timedOut"]
    gate.touch()
    bash.wait_for("\nover")
    until(lambda: bash.screen().endswith("$"), "the prompt")
    # However late, and more than once.
    for _ in range(2):
        ended = bash.value("terminal_wait", exit=True, timeoutMs=0)
        assert (ended["reason"], ended["exitStatus"]) == ("exit", 5)
    assert bash.value("terminal_since", cursor=done["cursor"])["exitStatus"] == 5
    bash.value("terminal_submit", command="true")
    ended = bash.value("terminal_wait", exit=True)
    assert (ended["reason"], ended["exitStatus"]) == ("exit", None)
    assert ended["note"].startswith("How it went is not known")


def test_a_shell_that_tells_of_its_commands_itself_is_believed(bash):
    bash.run(r"PROMPT_COMMAND='printf \\033]133\;D\;%s\\007 $?'")
    bash.value("terminal_submit", command="(exit 6)")
    ended = bash.value("terminal_wait", exit=True)
    assert (ended["reason"], ended["exitStatus"]) == ("exit", 6)


def test_a_pattern_matches_within_new_lines(bash):
    waiting = bash.in_background("terminal_wait", pattern=r"^\d+ passed, (\d+) failed$")
    bash.type("echo 12 passed, $((1+1)) failed\r")
    found = waiting.value()
    assert (found["reason"], found["match"]) == ("pattern", "12 passed, 2 failed")


def test_a_text_is_found_across_a_wrapped_line_colours_and_a_redrawn_screen(bash):
    waiting = bash.in_background("terminal_wait", text="y" * 200 + "red")
    bash.type("printf '%0200d' 0 | tr 0 y; printf '\\033[31mr\\033[0med\\n'\r")
    assert waiting.value()["reason"] == "text"
    waiting = bash.in_background("terminal_wait", text="in full screen")
    bash.type("printf '\\033[?1049h\\033[5;1Hfull\\033[5;6Hscreen\\033[5;1H\\033[3@in\\r\\n'; sleep 100\r")
    assert waiting.value()["match"] == "in full screen"


def test_a_text_at_the_end_of_a_flood_is_found(bash):
    waiting = bash.in_background("terminal_wait", text="the-end-42")
    bash.type("seq 300000; echo the-end-$((40+2))\r")
    assert waiting.value()["reason"] == "text"


def test_silence_is_counted_from_the_call(bash):
    quiet = bash.value("terminal_wait", idleMs=200, text="never")
    assert quiet["reason"] == "idle"
    assert quiet["tail"].endswith("$")
    bash.type("for i in 1 2 3 4 5 6; do echo tick; sleep 0.1; done\r")
    assert bash.value("terminal_wait", idleMs=400)["tail"].count("tick") == 7  # and in the line as typed


def test_the_end_of_a_program_and_of_the_terminal_are_exits(bash):
    fresh = bash.host.open()
    assert fresh.value("terminal_wait", exit=True, timeoutMs=200)["reason"] == "timeout"  # nothing runs
    fresh.call("terminal_close")
    bash.type("cat; echo $((40+2))\r")
    bash.wait_for("$ cat")
    waiting = bash.in_background("terminal_wait", exit=True)
    bash.type("\x04")
    assert waiting.value()["reason"] == "exit"
    bash.run("sleep 100", timeoutMs=0)
    waiting = bash.in_background("terminal_wait", exit=True)
    bash.value("terminal_interrupt")
    assert waiting.value()["exitStatus"] == 130
    waiting = bash.in_background("terminal_wait", text="never")
    bash.type("exit\r")
    ended = waiting.value()
    assert (ended["reason"], ended["ended"]) == ("exit", True)


def test_what_makes_no_sense_to_wait_for_is_refused(bash):
    assert bash.refusal("terminal_wait").startswith("Nothing is given to wait for.")
    assert bash.refusal("terminal_wait", exit=False).startswith("Nothing is given to wait for.")
    assert bash.refusal("terminal_wait", text="a", pattern="b").startswith("Both text and pattern")
    assert bash.refusal("terminal_wait", text="").startswith("The text is empty")
    assert bash.refusal("terminal_wait", exit="yes") == "Invalid exit"
    for pattern in ("(", "[", "a" * 2000, "", "(?P<x>"):
        assert "pattern" in bash.refusal("terminal_wait", pattern=pattern)


def test_a_pattern_without_end_harms_nobody_else(bash):
    waiting = bash.in_background("terminal_wait", pattern="^(a+)+$")
    bash.type("echo " + "a" * 60 + "!\r")
    for _ in range(5):
        assert bash.host.value("session_info")["nodeId"]
    assert "Matching the pattern took over" in waiting.error()


def test_long_waits_do_not_hold_up_the_project(bash):
    """Each wait here ends only through a call that comes after it."""
    waits = [bash.in_background("terminal_wait", text=f"go-{number}-end") for number in range(4)]
    running = bash.in_background("terminal_run", command="read a; echo go-$a-end; read b; echo done")
    bash.wait_for("$ read a")
    bash.value("terminal_wait", idleMs=200)
    bash.type("0\r")
    assert waits[0].value()["reason"] == "text"
    bash.type("\r")
    assert running.value()["output"].endswith("done")
    for number in (1, 2, 3):
        bash.run(f"echo go-{number}-end")
    assert [wait.value()["reason"] for wait in waits[1:]] == ["text"] * 3


def test_the_wait_is_never_longer_than_a_client_waits():
    timeout_s = extensions._timeout_s
    assert timeout_s({}) == timeout_s({"timeoutMs": 1_000_000}) == 30.0
    assert timeout_s({"timeoutMs": -5}) == 0.0
    assert timeout_s({"timeoutMs": 1500}) == 1.5


def test_a_host_that_stops_ends_the_waits(ctl, tmp_path_factory):
    host = start_host(ctl, tmp_path_factory.mktemp("h"), environment(), "bash")
    try:
        terminal = host.open()
        old = terminal.value("terminal_since")["cursor"]
        waiting = terminal.in_background("terminal_wait", text="never")
        running = terminal.in_background("terminal_run", command="sleep 100")
        terminal.wait_for("sleep 100")
        assert host.stop().returncode == 0
        # Not as a time-out: that would be a statement about the terminal.
        assert waiting.error().startswith("The host is stopping")
        assert running.error().startswith("The host is stopping")
        assert "was still running" not in (host.data / "host.log").read_text()
        # What was read before is not mistaken for what is new.
        host.start()
        again = terminal.value("terminal_since", cursor=old)
        assert again["missed"]
        assert again["cursor"] != old
        assert "no longer what you saw" in terminal.refusal(
            "terminal_send", text="x", expectRevision=old, requestId="after-restart"
        )
    finally:
        host.stop("--kill-sessions")


# -- terminal_since


def test_reading_on_tells_everything_once(bash):
    cursor = bash.value("terminal_since")["cursor"]
    bash.type("seq -f 'line-%06g-end' 5000; echo ov''er\r")
    seen = ""
    while "over\n" not in seen:
        part = bash.value("terminal_since", cursor=cursor)
        assert not part["missed"]
        cursor = part["cursor"]
        seen += part["output"] + "\n"
    # A line that two answers share stands in neither of them whole.
    numbers = re.findall(r"line-(\d{6})-end", seen)
    assert numbers == sorted(set(numbers))
    assert len(numbers) > 4900
    revision(bash)
    assert "line" not in bash.value("terminal_since", cursor=cursor)["output"]


def test_large_news_come_in_parts(bash):
    cursor = bash.value("terminal_since")["cursor"]
    bash.run("seq 20000")
    parts, more = [], True
    while more:
        part = bash.value("terminal_since", cursor=cursor)
        cursor, more = part["cursor"], part["more"]
        assert len(part["output"]) <= 33_000
        parts.append(part["output"])
    lines = "".join(parts).splitlines()
    assert lines[lines.index("1") :][:20000] == [str(number) for number in range(1, 20001)]


def test_what_the_host_no_longer_holds_is_told_as_missed(bash):
    cursor = bash.value("terminal_since")["cursor"]
    bash.run("seq 400000")
    first = bash.value("terminal_since", cursor=cursor)
    assert first["missed"]
    assert not bash.value("terminal_since", cursor=first["cursor"])["missed"]
    for wrong in ("", "x", "00000000.1", first["cursor"] + "999999999", "é.1"):
        assert bash.value("terminal_since", cursor=wrong)["missed"]


def test_full_screen_programs_are_left_out_and_said_so(bash):
    cursor = bash.value("terminal_since")["cursor"]
    bash.type("printf 'a\\n\\033[?1049h\\111NSIDE'; read x; printf '\\033[?1049lb\\n'\r")
    bash.value("terminal_wait", idleMs=300)
    inside = bash.value("terminal_since", cursor=cursor)
    assert inside["fullScreen"]
    assert "INSIDE" not in inside["output"]
    bash.type("ignored\r")
    bash.value("terminal_wait", idleMs=300)
    after = bash.value("terminal_since", cursor=inside["cursor"])
    assert not after["fullScreen"]
    assert after["output"].splitlines()[0] == "b"


# -- terminal_send


def test_the_same_request_types_once_and_gets_the_same_receipt(bash):
    seen = revision(bash)
    send = {"text": "echo once", "keys": ["Enter"], "expectRevision": seen, "requestId": "r-1"}
    receipt = bash.value("terminal_send", **send)
    assert receipt == {"nodeId": bash.node_id, "delivered": True, "requestId": "r-1", "cursor": receipt["cursor"]}
    bash.wait_for("\nonce")
    assert bash.value("terminal_send", **send) == receipt
    assert bash.value("terminal_send", **{**send, "expectRevision": "stale"}) == receipt
    assert "belongs to another request" in bash.refusal("terminal_send", **{**send, "text": "echo other"})
    revision(bash)
    assert bash.screen().count("echo once") == 1
    assert "once" in bash.value("terminal_since", cursor=receipt["cursor"])["output"]


def test_many_repeats_at_once_type_once(bash):
    send = {"text": "x", "expectRevision": revision(bash), "requestId": "at-once"}
    calls = [bash.in_background("terminal_send", **send) for _ in range(8)]
    assert len({call.value()["cursor"] for call in calls}) == 1
    revision(bash)
    assert bash.screen().splitlines()[-1] == "$ x"


def test_a_terminal_that_has_changed_gets_nothing(bash):
    seen = revision(bash)
    bash.run("echo changed")
    error = bash.refusal("terminal_send", text="rm -rf x", expectRevision=seen, requestId="r-2")
    assert error.startswith(f"Terminal {bash.node_id} is no longer what you saw at that revision; nothing was typed.")
    assert "rm -rf" not in bash.screen()
    # A refusal uses nothing up.
    bash.value("terminal_send", text="echo ok", expectRevision=revision(bash), requestId="r-2")
    for wrong in ("", "x", "00000000.0"):
        assert "no longer what you saw" in bash.refusal(
            "terminal_send", text="x", expectRevision=wrong, requestId="r-3"
        )


def test_named_keys_arrive_as_keys(bash):
    script = bash.host.script("keys.py", KEY_READER)
    bash.type(f"python3 {script}\r")
    bash.wait_for("READY")
    keys = ["Up", "F5", "C-c", "Escape", "Tab", "BackTab", "Backspace", "Enter", "M-x", "Ctrl-Left", "PageDown"]
    bash.value("terminal_send", text="-t;", keys=keys, expectRevision=revision(bash), requestId="keys")
    shown = bash.wait_for("\\x1b[6~")
    expected = [r"\x1b[A", r"\x1b[15~", r"\x03", r"\x1b", r"\t", r"\x1b[Z", r"\x7f", r"\r", r"\x1bx", r"\x1b[1;5D"]
    assert r"-t;" + "".join(expected) + r"\x1b[6~" in shown.replace("\n", "").replace("|", "")


KEY_READER = """\
import os, sys, tty
tty.setraw(0)
os.write(1, b"READY\\r\\n")
while True:
    data = os.read(0, 4096)
    os.write(1, repr(data)[2:-1].encode() + b"|")
"""


def test_what_is_no_key_is_refused_before_anything_is_typed(bash):
    seen = revision(bash)
    for name in ("Entr", "a", "", "C-", "C-C-a", "F13", "Enter ", "C-é", "-X", "Hello"):
        assert bash.refusal(
            "terminal_send", text="typed", keys=["Up", name], expectRevision=seen, requestId="k"
        ).startswith("There is no key named")
    assert bash.refusal("terminal_send", expectRevision=seen, requestId="k").startswith("Nothing is given to type")
    assert "1 to 200 characters" in bash.refusal("terminal_send", text="x", expectRevision=seen, requestId="")
    assert "typed" not in bash.screen()


def test_keys_have_the_names_that_people_use():
    names = [
        "enter",
        "Return",
        "Esc",
        "ctrl+c",
        "C-C",
        "Alt-f",
        "M-F",
        "S-Tab",
        "Shift-F3",
        "del",
        "PgUp",
        "C-Up",
        "C-[",
    ]
    assert tmux_keys(names) == [
        *("Enter", "Enter", "Escape", "C-c", "C-c", "M-f", "M-F", "BTab", "S-F3", "DC", "PageUp", "C-Up", "C-[")
    ]
    with pytest.raises(CtlError):
        tmux_keys(["C-;"])


def test_while_a_person_types_nothing_is_sent_and_control_clients_do_not_count(bash):
    host, target = bash.host, f"=ts-{bash.node_id}"
    window = PtyProgram(host.attach_argv(target), host.env)
    try:
        until(lambda: host.tmux("list-clients", "-t", target).stdout, "the window")
        window.type(b"\x15")
        seen = revision(bash)
        error = bash.refusal("terminal_send", text="no", expectRevision=seen, requestId="p")
        assert error.startswith(f"A person is typing in terminal {bash.node_id}; nothing was typed.")
    finally:
        window.stop()
    control = PtyProgram(host.attach_argv(target, "-C"), host.env)
    try:
        until(lambda: b"1" in host.tmux("list-clients", "-t", target, "-F", "#{client_control_mode}").stdout, "it")
        bash.value("terminal_send", text="yes", expectRevision=revision(bash), requestId="p")
    finally:
        control.stop()


def test_an_agent_may_watch_its_own_terminal_but_not_type_into_it(bash):
    own = str(bash.host.data / "agent-tools" / "sessions" / f"{bash.node_id}.json")
    for operation, args in (("terminal_since", {}), ("terminal_wait", {"idleMs": 1})):
        assert bash.host.value(operation, session=own, nodeId=bash.node_id, **args)["nodeId"] == bash.node_id
    send = {"text": "x", "expectRevision": "x", "requestId": "x"}
    refused = bash.host.call("terminal_send", session=own, nodeId=bash.node_id, **send)
    assert refused["error"].startswith("This is your own terminal")


# -- the table


def test_the_host_offers_its_extensions_and_the_table_describes_them(bash_host):
    offered = bash_host.value("session_info")["operations"]
    extensions = {one.name for one in OPERATIONS.values() if one.extension}
    assert extensions == {"terminal_run", "terminal_wait", "terminal_since", "terminal_send"} <= set(offered)
    shown = bash_host.run("tools", "terminal_wait").stdout.decode()
    assert "exit       boolean, optional." in shown
    wait = mcp_tool(OPERATIONS["terminal_wait"])
    assert wait["inputSchema"]["properties"]["exit"]["type"] == "boolean"
    assert wait["inputSchema"]["required"] == ["nodeId"]
    for value in (1, "true", None, []):
        with pytest.raises(InvalidCall, match="Invalid exit"):
            validate("terminal_wait", {"nodeId": "n", "exit": value})


def test_many_terminals_run_commands_at_the_same_time(bash_host):
    terminals = [bash_host.open() for _ in range(6)]
    results: list[str] = []

    def work(number: int) -> None:
        results.extend(terminals[number].run(f"echo {number}-{turn}")["output"] for turn in range(4))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(f"{number}-{turn}" for number in range(6) for turn in range(4))
    for terminal in terminals:
        terminal.call("terminal_close")


@pytest.mark.parametrize("command", ["echo out", "sleep 0", "echo out; sleep 30", "clear; echo out; sleep 30"])
def test_no_answer_says_the_same_twice(bash, command):
    run = bash.run(command, timeoutMs=700)
    wait = bash.value("terminal_wait", idleMs=150)
    since = bash.value("terminal_since", cursor=run["cursor"])
    for value in (run, wait, since):
        texts = [one.rstrip("\n") for one in value.values() if isinstance(one, str) and one]
        assert len(set(texts)) == len(texts), value
    if run["timedOut"]:
        assert "out" in run.get("screen", run["output"])
        bash.value("terminal_interrupt")
        bash.value("terminal_wait", exit=True)
