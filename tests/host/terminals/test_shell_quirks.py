"""Whatever a user has made of a shell: commands run with their true status or are refused with the cause."""

from __future__ import annotations

import pytest
from support import chosen
from support.terminal_host import start_host

EVERY = ["bash", "dash", "zsh", "fish", "ksh", "mksh", "yash", "busybox", "posh"]
POSIX = [shell for shell in EVERY if shell != "fish"]
STATUS_7 = {"fish": "sh -c 'exit 7'"}


@pytest.fixture(scope="module")
def base_host(ctl, tmp_path_factory):
    running = start_host(ctl, tmp_path_factory.mktemp("h"), {"PATH": chosen.plain_path()}, "bash")
    yield running
    running.stop("--kill-sessions")


@pytest.fixture(params=EVERY)
def shell(request, base_host):
    """A terminal with a shell of each kind at its prompt."""
    yield from inside(base_host, request.param)


@pytest.fixture(params=POSIX)
def posix_shell(request, base_host):
    yield from inside(base_host, request.param)


def inside(host, name: str):
    opened = host.open()
    opened.shell = name
    argv = {"busybox": "busybox sh", "fish": "fish -N", "zsh": "zsh -f", "bash": "bash --norc"}.get(name, name)
    become = opened.run(f"exec env PS1='$ ' ENV= {argv}")
    assert become["note"].startswith("The command has become another shell")
    yield opened
    opened.call("terminal_close")


def works(terminal) -> None:
    """Commands run with their true status."""
    for number in range(2):
        # With xtrace there is more than that, and with verbose no newline before it.
        assert f"out-{number}" in terminal.run(f"echo out-{number}")["output"].replace(f"echo out-{number}", "")
    seven = terminal.run(STATUS_7.get(terminal.shell, "(exit 7)"))
    assert seven["exitStatus"] == 7


def test_every_shell_runs_commands_with_their_status_and_output(shell):
    works(shell)
    assert shell.run("no-such-command-here")["exitStatus"] == 127
    assert shell.run("echo one; printf two")["output"] == "one\ntwo"
    assert "termsprawl" not in shell.screen()


def test_a_half_typed_line_is_left_alone_and_stays_whole(shell):
    works(shell)
    shell.type("echo half")
    shell.value("terminal_wait", idleMs=200)
    for operation in ("terminal_run", "terminal_submit"):
        assert shell.refusal(operation, command="echo no").startswith("Somebody has begun to type a command")
    shell.type("-whole\r")
    shell.wait_for("\nhalf-whole")


@pytest.mark.parametrize("switch", ["set -u", "set -x", "set -v", "set -C", "alias .=false eval=false command=false"])
def test_switched_shells_work(posix_shell, switch):
    if switch.startswith("alias") and posix_shell.shell == "posh":
        pytest.skip("posh has no aliases")
    posix_shell.run(switch)
    works(posix_shell)


def test_errexit_is_no_end(posix_shell):
    if posix_shell.shell == "yash":
        pytest.skip("what yash's own default prompt runs fails, which ends it, with or without us")
    posix_shell.run("set -e")
    assert posix_shell.run("echo one; true")["exitStatus"] == 0
    assert posix_shell.run("echo two")["output"].endswith("two")


def test_a_shell_without_standard_error_works_or_says_so(posix_shell):
    posix_shell.run("exec 2>/dev/null")
    done = posix_shell.call("terminal_run", command="echo on")
    if done["ok"]:
        assert done["value"]["output"].endswith("on")
        assert done["value"]["exitStatus"] == 0
        return
    assert "othing was" in done["error"]
    posix_shell.value("terminal_submit", command="exec 2>/dev/tty", force=True)
    posix_shell.value("terminal_wait", idleMs=200)
    works(posix_shell)


def test_a_terminal_that_does_not_echo_is_refused_or_works(posix_shell):
    posix_shell.run("stty -echo")
    done = posix_shell.call("terminal_run", command="echo on")
    if done["ok"]:
        assert (done["value"]["exitStatus"], done["value"]["output"][-2:]) == (0, "on")
    else:
        assert "othing was" in done["error"]
    posix_shell.value("terminal_submit", command="stty echo", force=True)
    posix_shell.value("terminal_wait", idleMs=200)
    works(posix_shell)


QUIRKS = {
    "bash": [
        "readonly PROMPT_COMMAND",
        "PROMPT_COMMAND=': mine'; readonly PROMPT_COMMAND",
        "trap 'echo trapped' ERR",
        "trap ':' DEBUG",
        "set -o functrace; trap ':' DEBUG",
        "set -T; shopt -s extdebug",
        "set -o vi",
        "function printf { :; }; function read { :; }; function declare { :; }",
        "set +o history",
        "shopt -s expand_aliases; alias builtin=false",
        "IFS=/; GLOBIGNORE='*'",
        "set -o posix",
        "PATH=",
    ],
    "zsh": [
        "readonly precmd_functions",
        "precmd_functions=(true); readonly precmd_functions",
        "TRAPZERR() { echo trapped }",
        "TRAPDEBUG() { : }",
        "setopt sh_word_split ksh_arrays",
        "setopt warn_create_global",
        "bindkey -v",
        "alias -g eval=x; alias builtin=false",
        "PATH=",
    ],
    "ksh": ["set -o emacs", "set -o vi", "trap ':' ERR DEBUG", "PATH="],
    "mksh": ["set -o vi", "trap ':' ERR", "PATH="],
    "yash": ["set -o vi", "set -o emacs", "PATH="],
    "dash": ["trap 'echo bye' EXIT", "PATH=", "IFS=/"],
    "busybox": ["IFS=/"],
    "posh": ["IFS=/"],
    "fish": ["set -g fish_key_bindings fish_vi_key_bindings", "function source; end; function printf; end"],
}


@pytest.mark.parametrize(("name", "quirk"), [(name, quirk) for name, quirks in QUIRKS.items() for quirk in quirks])
def test_what_a_user_may_have_done_to_a_shell(base_host, name, quirk):
    for terminal in inside(base_host, name):
        first = terminal.run(quirk)
        assert not first["timedOut"]
        if quirk == "PATH=":
            assert terminal.run("echo on")["exitStatus"] == 0
        else:
            works(terminal)
        stopped = terminal.run("echo $((40 + 2))" if name != "fish" else "math 40 + 2")
        assert stopped["output"].splitlines()[-1].endswith("42") or "trapped" in stopped["output"]


def test_a_restricted_shell_is_refused_with_its_own_words_and_lives(base_host):
    for terminal in inside(base_host, "bash"):
        terminal.value("terminal_submit", command="set -r")
        terminal.value("terminal_wait", idleMs=200)
        error = terminal.refusal("terminal_run", command="touch ran")
        assert "nothing was run" in error
        assert "restricted" in error
        assert not (base_host.project / "ran").exists()
        terminal.value("terminal_submit", command="echo still-$((40+2))")
        terminal.wait_for("still-42")


def test_zsh_keeps_our_line_out_of_its_history_without_hist_ignore_space(ctl, tmp_path_factory):
    root = tmp_path_factory.mktemp("h")
    host = start_host(ctl, root, {"PATH": chosen.plain_path()}, "zsh")
    try:
        (root / ".zshrc").write_text("HISTFILE=~/.history SAVEHIST=100 HISTSIZE=100; setopt inc_append_history\n")
        terminal = host.open()
        for number in range(3):
            terminal.run(f"echo {number}")
        listed = root / "listed"
        terminal.value("terminal_submit", command=f"fc -l 1 >|{listed}; : done")
        terminal.value("terminal_wait", exit=True)
        for path in (listed, root / ".history"):
            assert ": done" in path.read_text()
            assert "termsprawl" not in path.read_text()
    finally:
        host.stop("--kill-sessions")


def test_the_history_of_a_zsh_that_somebody_else_started_gets_no_line_of_ours(base_host):
    history = base_host.project / "zsh-history"
    for terminal in inside(base_host, "zsh"):
        terminal.value(
            "terminal_submit", command=f"HISTFILE={history} SAVEHIST=100 HISTSIZE=100; setopt inc_append_history"
        )
        terminal.value("terminal_submit", command=f"exec env HISTFILE={history} zsh -f")
        terminal.value("terminal_wait", idleMs=500)
        terminal.value("terminal_submit", command="SAVEHIST=100 HISTSIZE=100; setopt inc_append_history; : done")
        terminal.value("terminal_wait", idleMs=300)
        assert terminal.run("echo first")["output"] == "first"
        assert terminal.run("echo second")["output"] == "second"
        terminal.value("terminal_submit", command="fc -l 1; : over")
        assert "termsprawl" not in terminal.wait_for(": over")
        assert ": done" in history.read_text()
        assert "termsprawl" not in history.read_text()


def test_fish_whose_prompt_takes_its_time_gets_each_line_once(ctl, tmp_path_factory):
    root = tmp_path_factory.mktemp("h")
    (root / ".config" / "fish").mkdir(parents=True)
    config = root / ".config" / "fish" / "config.fish"
    config.write_text("function fish_prompt; sleep 0.4; echo -n 'slow> '; end\n")
    host = start_host(ctl, root, {"PATH": chosen.plain_path()}, "fish")
    try:
        terminal = host.open()
        for number in range(6):
            done = terminal.run(f"echo out-{number}; false")
            assert (done["output"], done["exitStatus"]) == (f"out-{number}", 1)
        assert "termsprawl" not in terminal.screen()
    finally:
        host.stop("--kill-sessions")
