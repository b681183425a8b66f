"""A refusal means that nothing ran, a node is its pane, and nobody types into what is not a prompt."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter

import pytest
from support import chosen
from support.terminal_host import start_host
from support.waiting import until


@pytest.fixture
def bash_host(ctl, tmp_path_factory):
    running = start_host(ctl, tmp_path_factory.mktemp("h"), {"PATH": chosen.plain_path()}, "bash")
    yield running
    running.stop("--kill-sessions")


@pytest.fixture
def bash(bash_host):
    opened = bash_host.open()
    opened.run("PS1='$ '")
    return opened


# -- a node is its pane


@pytest.mark.parametrize("change", ["split-window", "new-window", "swap-pane", "break-pane"])
def test_a_node_stays_its_pane_whatever_is_made_beside_it(bash_host, bash, change):
    session = f"=ts-{bash.node_id}:"
    if change in ("swap-pane", "break-pane"):
        assert bash_host.tmux("split-window", "-d", "-t", session, "cat").returncode == 0
        words = ["swap-pane", "-D", "-t", session] if change == "swap-pane" else ["break-pane", "-d", "-s", session]
        assert bash_host.tmux(*words).returncode == 0
    else:
        assert bash_host.tmux(change, "-t", session, "cat").returncode == 0
    assert bash.run("echo here")["output"] == "here"
    bash.value("terminal_submit", command="sleep 300")
    until(lambda: bash.screen().endswith("sleep 300"), "the command")
    bash.value("terminal_interrupt")
    assert bash.value("terminal_wait", exit=True)["reason"] == "exit"
    assert "here" in bash.screen()


def test_a_pane_that_is_gone_has_ended_although_its_session_lives(bash_host, bash):
    bash_host.tmux("split-window", "-d", "-t", f"=ts-{bash.node_id}:", "cat")
    bash.value("terminal_submit", command="exit")
    until(lambda: "has ended" in str(bash.call("terminal_read").get("error")), "the end")
    for operation, args in (("terminal_run", {"command": "ls"}), ("terminal_submit", {"command": "ls"})):
        assert "has ended" in bash.refusal(operation, **args)
    assert bash.value("terminal_close")["closed"]
    assert bash_host.tmux("has-session", "-t", f"=ts-{bash.node_id}").returncode != 0


# -- what tmux answers


def test_a_deleted_socket_file_is_no_end(bash_host, bash):
    socket = bash_host.data / "tmux-sockets" / "termsprawl"
    pid = int(bash_host.tmux("display-message", "-p", "#{pid}").stdout)
    bash.value("terminal_submit", command="true")
    socket.unlink()
    for operation, args in (("terminal_read", {}), ("terminal_run", {"command": "ls"}), ("terminal_close", {})):
        error = bash.refusal(operation, **args)
        assert "No such file or directory" in error
        assert f"kill -USR1 {pid}" in error
    assert "No such file or directory" in bash_host.call("terminal_open")["error"]
    assert bash.node_id in [node["id"] for node in bash_host.value("canvas_list")]
    bash_host.stop("--kill-sessions")
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the server's end")


def test_a_tmux_that_stands_still_is_no_end(bash_host, bash):
    ran = bash_host.project / "ran"
    server = int(bash_host.tmux("display-message", "-p", "#{pid}").stdout)
    os.kill(server, signal.SIGSTOP)
    try:
        for operation, args in (("terminal_read", {}), ("terminal_run", {"command": f"echo x >>{ran}"})):
            error = bash.refusal(operation, **args)
            assert "did not finish within 10 s" in error
            assert "has ended" not in error
        assert "did not finish within 10 s" in bash.refusal("terminal_close")
    finally:
        os.kill(server, signal.SIGCONT)
    assert bash.node_id in [node["id"] for node in bash_host.value("canvas_list")]
    assert bash.run("echo on")["output"] == "on"
    assert not ran.exists()
    os.kill(server, signal.SIGSTOP)
    assert bash_host.stop("--kill-sessions").returncode == 0
    until(lambda: not os.path.exists(f"/proc/{server}"), "the server's end")


# -- nothing runs twice


def test_a_run_whose_output_goes_elsewhere_has_run_once_and_says_so(bash_host, bash):
    ran = bash_host.project / "ran"
    # Somebody takes the pipe away just when the command starts: here by what runs.
    socket = bash_host.data / "tmux-sockets" / "termsprawl"
    began_s = time.monotonic()
    done = bash.call("terminal_run", command=f"tmux -S {socket} pipe-pane -t $TMUX_PANE; echo x >>{ran}; sleep 0.2")
    assert ran.read_text() == "x\n", done
    # Where nothing tells when it began, too.
    assert done["value"]["durationMs"] <= 1000 * (time.monotonic() - began_s) + 1


def test_commands_of_many_callers_have_each_effect_once_or_a_true_refusal(bash_host, bash):
    """The short form of the soak: several callers at once on the same terminals."""
    terminals = [bash, bash_host.open()]
    effects = bash_host.project / "effects"
    results: dict[str, dict] = {}

    def work(caller: int) -> None:
        for number in range(6):
            name = f"{caller}-{number}"
            terminal = terminals[number % 2]
            results[name] = terminal.call("terminal_run", command=f"echo {name} >>{effects}; (exit {number})")

    threads = [threading.Thread(target=work, args=(caller,)) for caller in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = Counter(effects.read_text().split())
    assert len(results) == 24
    assert any(result["ok"] for result in results.values())
    for name, result in results.items():
        assert seen[name] == (1 if result["ok"] else 0), (name, result)
        if result["ok"]:
            assert result["value"]["exitStatus"] == int(name.split("-")[1])


# -- nobody types into what is not a prompt


def refuses(terminal, words: str) -> None:
    before = terminal.screen()
    assert words in terminal.refusal("terminal_submit", command="echo typed")
    assert terminal.screen() == before


def test_a_password_prompt_gets_nothing(bash):
    bash.value("terminal_submit", command="read -s -p 'Password: ' secret; echo; echo got-$secret")
    bash.wait_for("\nPassword:")
    refuses(bash, "does not show what is typed, as if it asked for a password")
    bash.value("terminal_submit", command="forced", force=True)
    bash.wait_for("got-forced")


@pytest.mark.parametrize("program", ["printf '\\033[?1049h'; stty raw -echo; sleep 300", "stty raw -echo; sleep 300"])
def test_a_program_with_single_keys_gets_nothing(bash, program):
    bash.value("terminal_submit", command=f'sh -c "{program}"; stty sane')
    bash.value("terminal_wait", idleMs=300)
    refuses(bash, "takes single keys; nothing was typed")


def test_what_reads_lines_gets_them_and_is_named(bash):
    bash.value("terminal_submit", command="cat")
    bash.value("terminal_wait", idleMs=300)
    assert bash.value("terminal_submit", command="to cat")["foreground"] == "cat"
    bash.wait_for("to cat\nto cat")
    bash.value("terminal_interrupt")
    until(lambda: "foreground" not in bash.value("terminal_submit", command="true"), "the shell itself")
    bash.value("terminal_submit", command="python3 -q")
    bash.wait_for(">>>")
    assert bash.value("terminal_submit", command="print(40 + 2)")["foreground"].startswith("python")
    bash.wait_for("\n42")


def test_leaked_replies_at_the_prompt_are_cleared(bash):
    bash.run("printf '\\033[6n'; sleep 0.2")
    bash.value("terminal_wait", idleMs=200)
    assert bash.run("echo on")["output"] == "on"
    bash.value("terminal_input", text=";12R")
    bash.value("terminal_submit", command="echo and-$((40+2))")
    bash.wait_for("\nand-42")


@pytest.mark.parametrize("begun", ["R", "c", "cd"])
def test_a_letter_that_somebody_typed_is_no_reply(bash, begun):
    bash.type(begun)
    bash.wait_for(f"$ {begun}")
    assert "Somebody has begun" in bash.refusal("terminal_run", command="echo no")
    assert "Somebody has begun" in bash.refusal("terminal_submit", command="echo no")
    bash.value("terminal_wait", idleMs=100)
    assert bash.screen().splitlines()[-1] == f"$ {begun}"


def test_after_a_refused_run_the_prompt_is_still_there_at_every_width(bash_host, bash):
    for columns in (20, 45, 120, 300):
        bash_host.tmux("resize-window", "-t", f"=ts-{bash.node_id}", "-x", str(columns), "-y", "12")
        bash.value("terminal_wait", idleMs=150)
        bash.type("echo half")
        bash.wait_for("$ echo half")
        bash.value("terminal_wait", idleMs=150)
        assert "Somebody has begun" in bash.refusal("terminal_run", command="echo no")
        bash.value("terminal_wait", idleMs=150)
        assert bash.screen().splitlines()[-1] == "$ echo half"
        bash.type("-whole\r")
        bash.wait_for("half-whole\n$")
        bash.run("printf '\\033[H\\033[2J\\033[3J'")
