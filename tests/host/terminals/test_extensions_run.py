"""terminal_run in real shells: the output, how it ended, and a screen as if a person had typed."""

from __future__ import annotations

import os

import pytest
from support import chosen
from support.node_server import PtyProgram
from support.terminal_host import Background, start_host
from support.waiting import until

from termsprawlctl.host.daemon.audit import past
from termsprawlctl.host.terminals.foreground import NAMES

SHELLS = ["bash", "zsh", "fish", "dash"]
# The same in the words of each shell; what is not named here is the same in all.
FISH = {
    "status": "echo $status",
    "set state": "cd /usr; set -gx KEPT 'a b'",
    "exit 7": "sh -c 'exit 7'",
    "group": "begin; echo one; echo two; end",
    "syntax error": "echo )",
}
POSIX = {
    "status": "echo $?",
    "set state": "cd /usr; export KEPT='a b'",
    "exit 7": "(exit 7)",
    "group": "{ echo one; echo two; }",
    "syntax error": "echo one; if",
}


class Dialect:
    def __init__(self, shell: str) -> None:
        self.shell = shell
        self._words = FISH if shell == "fish" else POSIX

    def __getitem__(self, name: str) -> str:
        return self._words[name]


def environment() -> dict[str, str]:
    return {"PATH": chosen.plain_path()}


@pytest.fixture(scope="module", params=SHELLS)
def shell_host(request, ctl, tmp_path_factory):
    running = start_host(ctl, tmp_path_factory.mktemp("h"), environment(), request.param)
    running.dialect = Dialect(request.param)
    yield running
    running.stop("--kill-sessions")


@pytest.fixture(scope="module")
def bash_host(ctl, tmp_path_factory):
    running = start_host(ctl, tmp_path_factory.mktemp("h"), environment(), "bash")
    yield running
    running.stop("--kill-sessions")


@pytest.fixture
def terminal(shell_host):
    opened = shell_host.open()
    opened.dialect = shell_host.dialect
    yield opened
    opened.call("terminal_close")


@pytest.fixture
def bash(bash_host):
    opened = bash_host.open()
    yield opened
    opened.call("terminal_close")


def test_it_tells_output_status_and_duration_and_leaves_the_screen_clean(terminal):
    done = terminal.run("echo hello; printf abc")
    assert done["output"] == "hello\nabc"
    assert (done["exitStatus"], done["timedOut"], done["truncated"]) == (0, False, False)
    assert done["durationMs"] >= 0
    assert terminal.run(terminal.dialect["exit 7"])["exitStatus"] == 7
    assert terminal.run("no-such-command-here")["exitStatus"] == 127
    screen = terminal.screen()
    # The prompt, the command as if typed, its output: and no trace of how it was done.
    for trace in ("termsprawl", "eval ", "133;", ".1;", str(terminal.host.data)):
        assert trace not in screen
    assert screen.count("echo hello; printf abc") == 1
    assert "echo hello; printf abc\nhello\nabc" in screen
    assert screen.count("no-such-command-here") in (2, 3)  # typed, and in the shell's complaint


def test_the_shell_keeps_its_state_and_gets_nothing_new(terminal):
    before = terminal.run("set")["output"]
    terminal.run(terminal.dialect["set state"])
    assert terminal.run('pwd; echo "$KEPT"')["output"] == "/usr\na b"
    terminal.run(terminal.dialect["exit 7"])
    assert terminal.run(terminal.dialect["status"])["output"] == "7"
    # Typed by hand: nothing of ours is defined while the prompt is there.
    listed, over = terminal.host.project / "set", terminal.host.project / "over"
    terminal.value("terminal_submit", command=f"set >{listed}; touch {over}")
    until(over.exists, "the list of variables")
    assert "PWD" in before
    assert "PWD" in listed.read_text()
    assert "__termsprawl" not in listed.read_text()
    over.unlink()
    listed.unlink()


def test_a_command_of_many_lines_runs_as_it_stands(terminal):
    command = f"{terminal.dialect['group']}\n# a comment, isn't it\n\necho 'quo\"ted'\t\\\\ '!x' \"it's\" ü '日本'\n"
    assert terminal.run(command)["output"] == "one\ntwo\nquo\"ted \\ !x it's ü 日本"
    long_word = "x" * 30_000
    assert terminal.run(f"printf %s {long_word} | wc -c")["output"].strip() == "30000"


def test_a_command_that_reads_gets_what_is_typed_meanwhile(terminal):
    running = terminal.in_background("terminal_run", command="read line; echo got-$line")
    # While it waits the project's other operations go on; nothing here would end otherwise.
    until(lambda: terminal.screen().rstrip().endswith(("got-$line", "read>")), "the command's start")
    terminal.type("typed\r")
    done = running.value()
    assert done["output"].splitlines()[-1] == "got-typed"
    assert done["exitStatus"] == 0


def test_cleared_and_full_screens_leave_the_output_readable(terminal):
    done = terminal.run("printf 'before\\n\\033[H\\033[2Jafter\\n'")
    assert done["output"] == "before\nafter"
    full = terminal.run("printf 'a\\n\\033[?1049h\\033[H\\111NSIDE\\033[?1049lb\\n'")
    assert (full["output"], full["fullScreen"]) == ("a\nb", True)
    assert "INSIDE" not in terminal.screen()
    assert terminal.run("printf '10%%\\r20%%\\r100%%\\n'")["output"] == "100%"


def test_a_job_in_the_background_is_not_waited_for(terminal):
    done = terminal.run("sleep 100 & echo started")
    assert done["output"].splitlines()[-1] == "started"
    assert done["exitStatus"] == 0


def test_a_syntax_error_is_told_and_the_shell_goes_on(terminal):
    failed = terminal.run(terminal.dialect["syntax error"])
    assert failed["exitStatus"] not in (0, None)
    assert failed["output"]
    assert terminal.run("echo alive")["output"] == "alive"


def test_exit_ends_the_terminal_and_tells_the_status(terminal):
    done = terminal.run("echo bye; exit 3")
    assert done["output"].splitlines()[0] == "bye"
    assert (done["exitStatus"], done["ended"]) == (3, True)
    assert "has ended" in terminal.refusal("terminal_read")


def test_an_interrupt_ends_the_command_and_the_wait(terminal):
    running = terminal.in_background("terminal_run", command="sleep 100; echo never")
    terminal.wait_for("sleep 100")
    terminal.value("terminal_interrupt")
    done = running.value()
    assert done["exitStatus"] == 130
    assert "never" not in done["output"]
    assert terminal.run("echo back")["output"] == "back"


def test_when_the_time_is_up_it_tells_the_screen_and_lets_the_command_run(terminal):
    gate = terminal.host.project / "gate"
    started = terminal.run(
        f"echo first; while ! test -e {gate}; sleep 0.05; end; echo last"
        if terminal.dialect.shell == "fish"
        else f"echo first; while ! test -e {gate}; do sleep 0.05; done; echo last",
        timeoutMs=300,
    )
    assert started["timedOut"]
    assert started["exitStatus"] is None
    assert started["output"] == "first"
    assert started["screen"].rstrip().endswith("first")
    assert "Nothing was typed" in terminal.refusal("terminal_run", command="echo second")
    waiting = terminal.in_background("terminal_wait", exit=True)
    gate.touch()
    ended = waiting.value()
    gate.unlink()
    assert (ended["reason"], ended["exitStatus"]) == ("exit", 0)
    assert "last" in ended["tail"]
    assert terminal.run("echo third")["output"] == "third"


def test_while_a_program_runs_it_refuses_and_types_nothing(terminal):
    terminal.value("terminal_submit", command="cat")
    terminal.type("ready\n")
    terminal.wait_for("ready\nready")
    error = terminal.refusal("terminal_run", command="echo no")
    assert error.startswith(f"cat runs in terminal {terminal.node_id}: no {NAMES} is at its prompt")
    assert "echo no" not in terminal.screen()
    terminal.value("terminal_interrupt")
    assert terminal.run("echo yes")["output"] == "yes"


def test_a_script_of_the_same_shell_is_a_program(bash):
    script = bash.host.script("asks.sh", "echo go; read -e answer\n")
    bash.value("terminal_submit", command=f"bash {script}")
    bash.wait_for("\ngo")
    assert "Nothing was typed" in bash.refusal("terminal_run", command="echo no")
    bash.type("\r")
    assert bash.run("echo yes")["output"] == "yes"


def test_a_half_typed_line_is_left_alone(terminal):
    terminal.run("echo ready")
    terminal.type("echo half")
    terminal.value("terminal_wait", idleMs=200)
    error = terminal.refusal("terminal_run", command="echo no")
    assert error.startswith("Somebody has begun to type a command")
    terminal.value("terminal_wait", idleMs=200)
    terminal.type("-whole\r")
    terminal.wait_for("\nhalf-whole")


def test_errors_that_end_a_whole_line_are_told_too(terminal):
    if terminal.dialect.shell == "fish":
        pytest.skip("fish has no such errors")
    for command in ("set -u; echo $not_set; echo never", ": ${not_set?missing}; echo never"):
        failed = terminal.run(command)
        assert failed["exitStatus"] not in (0, None)
        assert "never" not in failed["output"]
    assert terminal.run("set +u; echo on")["output"] == "on"


def test_errexit_acts_as_if_typed(terminal):
    if terminal.dialect.shell == "fish":
        pytest.skip("fish has no errexit")
    assert terminal.run("set -e; echo on")["exitStatus"] == 0
    assert terminal.run("echo still")["output"] == "still"
    ended = terminal.run("false; echo never")
    assert (ended["ended"], ended["exitStatus"]) == (True, 1)
    assert "never" not in ended["output"]


BASH_PROMPT = r"""
PS1='\[\e[1;32m\]┌─\u 🎉 \w\[\e[0m\]\n\[\e]0;title\a\]└─> '
PROMPT_COMMAND=(': first' 'count=$((count+1))')
alias printf=false cat=false
set -o noclobber
function eval { echo not this one; }; function printf { :; }; function history { :; }; alias eval=false
"""
# zle-line-finish: a prompt that shrinks when a line is accepted.
ZSH_PROMPT = r"""
setopt noclobber prompt_subst; alias -g L='| less'; alias printf=false cat=false
PROMPT=$'%F{green}┌─%n 🎉 %~%f\n%B└─>%b '; RPROMPT='%F{red}%* right%f'
zle-line-finish() { PROMPT='> ' RPROMPT=; zle reset-prompt; PROMPT=$'┌─ 🎉 %~\n└─> ' }
zle -N zle-line-finish
function eval { echo not this one; }; function printf { :; }; alias eval=false
"""
FISH_PROMPT = """
function fish_prompt; set_color green; echo '┌─ 🎉 '(prompt_pwd); set_color normal; echo -n '└─> '; end
function fish_right_prompt; echo right; end
alias printf=false
"""
PROMPTS = {
    "bash": (".bash_profile", BASH_PROMPT),
    "zsh": (".zshrc", ZSH_PROMPT),
    "fish": (".config/fish/config.fish", FISH_PROMPT),
}


@pytest.mark.parametrize("shell", PROMPTS)
def test_prompts_full_of_everything_stay_whole(ctl, tmp_path_factory, shell):
    root = tmp_path_factory.mktemp("h")
    name, content = PROMPTS[shell]
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    host = start_host(ctl, root, environment(), shell)
    try:
        (root / name).write_text(content)
        terminal = host.open()
        terminal.wait_for("└─>")
        for number in range(3):
            assert terminal.run(f"echo out-{number}")["output"] == f"out-{number}"
        lines = [line for line in terminal.screen().splitlines() if line.strip()]
        commands = [line for line in lines if "echo out-" in line]
        assert len(commands) == 3
        assert all(line.startswith("└─> echo out-") for line in commands)
        # In a window of another size as well.
        host.tmux("resize-window", "-t", f"=ts-{terminal.node_id}", "-x", "50", "-y", "12")
        assert terminal.run("echo narrow")["output"] == "narrow"
        assert "termsprawl" not in terminal.screen()
        if shell == "bash":
            assert terminal.run("declare -p count")["output"].startswith("declare -- count=")
    finally:
        host.stop("--kill-sessions")


def test_ten_megabytes_are_cut_in_the_middle_and_say_so(bash):
    done = bash.run("seq 1400000; echo the end >&2")
    assert (done["truncated"], done["exitStatus"]) == (True, 0)
    assert done["outputBytes"] > 10_000_000
    assert len(done["output"]) < 40_000
    assert done["output"].startswith("1\n2\n3\n")
    assert done["output"].endswith("\n1399999\n1400000\nthe end")
    assert f"[... left out here: the output has {done['outputBytes']} bytes ...]" in done["output"]


def test_an_unfinished_command_is_given_up_and_nothing_runs(bash):
    bash.type("echo 'unfinished\r")
    bash.wait_for("\n>")
    assert "waits for the rest of an earlier one" in bash.refusal("terminal_run", command="touch ran")
    assert not (bash.host.project / "ran").exists()
    assert bash.run("echo fresh")["output"] == "fresh"


def test_shells_in_shells_are_shells(bash):
    for shell in ("bash --norc", "dash", "exec bash --norc -i"):
        bash.value("terminal_submit", command=shell)
        bash.value("terminal_wait", idleMs=300)
        assert bash.run("echo inside-$((40+2))")["output"] == "inside-42"
    become = bash.run("exec dash")
    assert (become["timedOut"], become["exitStatus"]) == (False, None)
    assert become["note"].startswith("The command has become another shell")
    assert bash.run("echo in-dash")["output"] == "in-dash"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="only /proc tells that a process became another program")
def test_a_shell_that_becomes_a_new_one_of_its_kind_has_ended_the_command(terminal):
    become = terminal.run(f"exec {terminal.dialect.shell}")
    assert (become["timedOut"], become["exitStatus"]) == (False, None)
    assert become["note"].startswith("The command has become another shell")
    assert terminal.run("echo anew")["output"] == "anew"


def test_zsh_may_want_a_semicolon_before_a_brace(bash):
    bash.value("terminal_submit", command="exec zsh -f")
    bash.value("terminal_wait", idleMs=300)
    bash.run("emulate sh")
    assert bash.run("echo like-sh; false")["output"] == "like-sh"
    assert bash.run("echo $?; emulate zsh")["output"] == "1"
    # That of this very command; the earlier ones have taken theirs away.
    assert bash.run("echo ${#precmd_functions}")["output"] == "1"


def test_the_history_of_bash_does_not_get_what_was_typed(bash):
    bash.run("unset HISTCONTROL; history -c")
    for number in range(3):
        bash.run(f"echo {number}")
    assert bash.run("history")["output"] == ""


def test_an_empty_command_and_ones_own_terminal_are_refused(bash):
    assert bash.refusal("terminal_run", command=" \n").startswith("The command is empty")
    own = bash.host.data / "agent-tools" / "sessions" / f"{bash.node_id}.json"
    result = bash.host.call("terminal_run", session=str(own), nodeId=bash.node_id, command="ls")
    assert result["error"].startswith("This is your own terminal")


def test_while_a_person_types_nothing_is_run(bash):
    socket = bash.host.data / "tmux-sockets" / "termsprawl"
    attach = ["tmux", "-S", str(socket), "attach-session", "-t", f"=ts-{bash.node_id}"]
    window = PtyProgram(attach_argv(attach, bash.host.env), bash.host.env)
    try:
        until(lambda: bash.host.tmux("list-clients", "-t", f"=ts-{bash.node_id}").stdout, "the window")
        window.type(b"\x15")
        error = bash.refusal("terminal_run", command="echo no")
        assert error.startswith(f"A person is typing in terminal {bash.node_id}")
        # Left alone for a moment it is accepted.
        done = until(lambda: bash.call("terminal_run", command="echo yes").get("value"), "the run")
        assert done["output"] == "yes"
    finally:
        window.stop()


def attach_argv(argv: list[str], env: dict[str, str]) -> list[str]:
    import shutil

    return [shutil.which(argv[0], path=env["PATH"]), *argv[1:]]


def test_a_data_directory_with_an_odd_name_works_as_well(ctl, tmp_path):
    root = tmp_path / "it's a $(dir) ü"
    root.mkdir()
    host = start_host(ctl, root, environment(), "bash")
    try:
        terminal = host.open()
        assert terminal.run("echo odd; pwd")["output"] == f"odd\n{host.project}"
    finally:
        host.stop("--kill-sessions")


def test_the_scripts_of_ended_commands_are_gone(bash):
    def scripts() -> list[str]:
        return [path.name for path in (bash.host.data / "run").iterdir() if not path.name.endswith(".out")]

    until(lambda: not scripts(), "the end of other tests' scripts")
    bash.run("echo one")
    assert scripts() == []
    bash.run("sleep 100", timeoutMs=0)
    assert len(scripts()) == 1
    bash.value("terminal_close")
    until(lambda: not scripts(), "the script's end")
    assert not (bash.host.data / "run" / f"{bash.node_id}.out").exists()


def test_without_a_node_it_opens_a_terminal_and_tells_which(shell_host):
    before = shell_host.value("canvas_list")
    done = shell_host.value("terminal_run", command=shell_host.dialect["exit 7"])
    assert done["exitStatus"] == 7
    (new,) = [node for node in shell_host.value("canvas_list") if node not in before]
    assert (new["id"], new["type"], new["position"]["y"]) == (done["nodeId"], "terminal", 60)
    assert shell_host.value("terminal_run", nodeId=new["id"], command="echo again")["output"] == "again"
    events = [one for one in past(str(shell_host.data / "audit")) if one["event"] == "node-opened"]
    assert [one["node"] for one in events].count(new["id"]) == 1


def test_new_terminals_do_not_wait_for_each_other_and_one_whose_shell_comes_late_runs_it_too(ctl, tmp_path):
    running = start_host(ctl, tmp_path, environment(), "bash")
    (tmp_path / ".bash_profile").write_text("sleep 2\n")
    try:
        begun = [Background(running.session_file, "terminal_run", {"command": f"echo {number}"}) for number in "123"]
        done = [one.value() for one in begun]
        assert [one["output"] for one in done] == ["1", "2", "3"]
        assert len({one["nodeId"] for one in done}) == 3
    finally:
        running.stop("--kill-sessions")


def test_a_new_terminal_in_which_nothing_could_be_run_is_gone_again(ctl, tmp_path):
    running = start_host(ctl, tmp_path, environment(), "bash")
    (tmp_path / ".bash_profile").write_text("cat\n")
    try:
        refused = running.call("terminal_run", command="echo no")
        assert "closed again" in refused["error"]
        refused = running.call("terminal_run", command=" ")
        assert "nothing was run" in refused["error"]
        assert running.value("canvas_list") == []
    finally:
        running.stop("--kill-sessions")
