"""Part by part `terminal_since` tells what tmux's own screen shows: each line once, as it stands there."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import cycle

import pytest
from support import chosen
from support.terminal_host import start_host

LONG = "a long prompt of many words> "
TRANSIENT = (
    "zle-line-finish() { PROMPT='> ' RPROMPT=; zle reset-prompt }; zle -N zle-line-finish; "
    "precmd() { PROMPT=$'transient\\n%# ' }"
)
FISH_RIGHT = "function fish_right_prompt; echo -n right; end"
# (shell, what makes its prompt)
PROMPTS = [
    ("bash", "PS1='$ '"),
    ("bash", f"PS1='{LONG}'"),
    ("bash", "PS1='upper\\nlines> '"),
    ("bash", "PROMPT_COMMAND='printf \"%*s\\r\" $COLUMNS right'; PS1='l> '"),
    ("bash", "set -o vi; PS1='\\[\\e[1;32m\\]日本\\[\\e[0m\\]> '"),
    ("zsh", f"PS1='{LONG}'"),
    ("zsh", "PS1=$'%F{red}top%f\\n> '; RPROMPT='right'"),
    ("zsh", "PS1='l> '; RPROMPT='right'; setopt transient_rprompt; bindkey -v"),
    ("zsh", TRANSIENT),
    ("fish", f"function fish_prompt; echo -n '{LONG}'; end"),
    ("fish", f"function fish_prompt; echo top; echo -n 'l> '; end; {FISH_RIGHT}"),
    ("dash", "PS1='$ '"),
    ("ksh", "set -o emacs; PS1='$ '"),
    ("mksh", f"PS1='{LONG}'"),
    ("yash", "PS1='$ '"),
]
COMMANDS = {
    "echo server is listening": ["server is listening"],
    "printf 'a\\nb'": ["a"],
    f"echo {'x' * 50}": ["x" * 50],
    "echo 'one\ntwo'": ["one", "two"],
    f"echo {'日本' * 15}": ["日本" * 15],
    "seq 130 160": [str(number) for number in range(130, 161)],
}


@pytest.fixture(scope="module", params=["bash", "zsh", "fish", "dash", "ksh", "mksh", "yash"])
def host(request, ctl, tmp_path_factory):
    env = {"PATH": chosen.plain_path(), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    running = start_host(ctl, tmp_path_factory.mktemp("h"), env, request.param)
    running.shell = request.param
    yield running
    running.stop("--kill-sessions")


def read_on(terminal, cursor: str | None) -> tuple[str, str]:
    """All that is new, in as many parts as it takes, and the next cursor."""
    text = ""
    while True:
        part = terminal.value("terminal_since", cursor=cursor) if cursor else terminal.value("terminal_since")
        cursor, text = part["cursor"], text + part["output"]
        assert not part["missed"]
        if not part["more"]:
            return text, cursor


def resize(terminal, columns: int) -> None:
    target = f"=ts-{terminal.node_id}:"
    terminal.host.tmux("resize-window", "-t", target, "-x", str(columns), "-y", "24")
    terminal.value("terminal_wait", idleMs=200)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def read_and_shown(terminal, prompt: str, columns: list[int]) -> tuple[list[str], list[str], set[str]]:
    """The lines that are read, those that are shown, and those that stood at the end of a part, as prompts do."""
    sizes = cycle(columns)
    resize(terminal, next(sizes))
    terminal.run(prompt)
    terminal.value("terminal_submit", command="printf '\\033[H\\033[2J\\033[3J'")
    terminal.value("terminal_wait", idleMs=300)
    _, cursor = read_on(terminal, None)
    parts = [terminal.screen().removesuffix("right").rstrip() + " "]
    for command in COMMANDS:
        terminal.value("terminal_submit", command=command)
        terminal.value("terminal_wait", idleMs=250)
        if len(columns) > 1:
            resize(terminal, next(sizes))
        part, cursor = read_on(terminal, cursor)
        parts.append(part)
    pending = {line for part in parts for line in lines(part)[-3:]}
    return lines("".join(parts)), lines(terminal.screen()), pending


@pytest.mark.parametrize("columns", [[20], [300], [60, 40, 100, 33]], ids=str)
def test_each_line_is_read_once_as_it_is_shown(host, columns):
    for shell, prompt in PROMPTS:
        # Not read as shown: yash's own prompt is longer than 20 columns, so its lines are drawn twice; a right half
        # that bash prints with blanks is part of its line once the terminal is narrower. docs/portability.md has both.
        if shell != host.shell or (shell, columns) == ("yash", [20]) or (len(columns) > 1 and "%*s" in prompt):
            continue
        terminal = host.open()
        read, shown, pending = read_and_shown(terminal, prompt, columns)
        terminal.call("terminal_close")
        for line in [line for output in COMMANDS.values() for line in output]:
            # A shell without an editor asks for a second line once both are shown: its output follows on that row.
            assert read.count(line) + read.count(f"> {line}") == 1, (prompt, line, read)
        if len(columns) > 1:  # what a shell draws anew takes lines from the screen that were read before
            continue
        if "right" in prompt:
            read[-1] = shown[-1]  # the other half of a prompt is told with the line that is typed there
        # A prompt that is drawn in another way once the line is finished stands in both.
        changes = SequenceMatcher(None, shown, read, autojunk=False).get_opcodes()
        for kind, start, end, begin, behind in changes:
            same = "".join(shown[start:end]) == "".join(read[begin:behind])
            is_old = kind == "insert" and pending.issuperset(read[begin:behind])
            assert kind == "equal" or same or is_old, (prompt, shown[start:end], read[begin:behind])


def test_a_text_of_many_lines_is_submitted_to_every_shell_as_it_stands(host):
    terminal = host.open()
    terminal.value("terminal_submit", command="""'echo' "it's" 'two\nlines'; echo 'no \\ "quote"'""")
    assert "it's two\nlines\n" in terminal.wait_for('\nno \\ "quote"')
