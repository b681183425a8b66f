"""A line that was begun keeps the agent out, at the prompts that people have in the shells that they have."""

from __future__ import annotations

import shutil

import pytest
from support.waiting import until

BASH = ["bash", "--noprofile", "--rcfile"]
FISH = (
    "function fish_prompt; printf 'me@host ~> '; end\nfunction fish_right_prompt; date +%T; end\nset -g fish_greeting\n"
)
POWERLEVEL = (
    "setopt prompt_subst\n"
    "PROMPT=$'\\n%F{blue}~/src%f %F{green}main !2%f ${(r:$((COLUMNS - 30))::\\u00b7:)} %F{yellow}3s%f\\n'\n"
    "PROMPT+='%F{green}\u276f%f '\n"
    "RPROMPT='%F{red}1%f < %D{%H:%M:%S}'\n"
)
# Name: (argv before the file with its settings, the settings, what the prompt ends with).
SHELLS = {
    "bash with two lines": (BASH, "PS1='\\n\\u@\\h \\w\\n\\$ '\n", ("$", "#")),
    "bash with colours and a time": (BASH, "PS1='\\[\\e[1m\\]\\t\\[\\e[0m\\] \\w \u276f '\n", ("\u276f",)),
    "bash with words alone": (BASH, "PS1='ready, master: '\n", ("master:",)),
    "bash below a line as wide as the pane": (
        BASH,
        "PROMPT_COMMAND='printf %${COLUMNS}s | tr \" \" -'\nPS1='\n> '\n",
        (">",),
    ),
    "bash with a line as wide as the pane": (BASH, "PS1='$(printf %${COLUMNS}s | tr \" \" -)\n> '\n", (">",)),
    "zsh": (["zsh"], "PROMPT='%m%# '\n", ("%", "#")),
    "zsh with a prompt at the right": (["zsh"], "PROMPT='%~ %# '\nRPROMPT='[%T]'\n", ("%", "#", "]")),
    "zsh like powerlevel": (["zsh"], POWERLEVEL, ("\u276f",)),
    "fish": (["fish", "--no-config", "-C"], FISH, (">",)),
    "ksh": (["ksh"], "PS1='two\nlines: $ '\n", ("$",)),
    "mksh": (["mksh"], "PS1='$ '\n", ("$",)),
}


@pytest.fixture(params=SHELLS)
def shell(request, tmux, client, tmp_path):
    """A session `it` with the shell at its prompt, shown in the client."""
    argv, settings, ends = SHELLS[request.param]
    if not shutil.which(argv[0]):
        pytest.skip(f"no {argv[0]} here")
    home = tmp_path / "home"
    home.mkdir()
    file = home / ".zshrc"
    file.write_text(settings, encoding="utf-8")
    if argv[0] == "bash":
        argv = [*argv, str(file)]
    elif argv[0] == "fish":
        argv = [*argv, settings]
    variables = {"HOME": home, "ZDOTDIR": home, "ENV": file, "LANG": "C.UTF-8", "XDG_DATA_HOME": home, "HISTFILE": ""}
    pairs = [f"{name}={value}" for name, value in variables.items()]
    tmux.new_session("it", "env", *pairs, *argv)
    until(lambda: any(end in tmux.screen("=it:") for end in ends), "a prompt")
    tmux.run("switch-client", "-c", client.name, "-t", "=it")
    return request.param


def front(tmux) -> str:
    return tmux.run("display-message", "-p", "-t", "=it:", "#{cursor_x},#{cursor_y}")


def long_after_the_last_key(tmux) -> None:
    pressed_s = int(tmux.clients("#{client_activity}")[0])
    until(lambda: int(tmux.run("display-message", "-p", "%s")) > pressed_s + 3, "the pause after it is over")


def test_a_line_that_was_begun_blocks_until_it_is_sent_or_cleared(shell, tmux, client, share, ids):
    two = ids()["two"]
    share.quiet_context()
    for whole, over in ((b"echo rm -rf bui", b"\x15"), (b"echo ", b"\x03"), (b"e", b"\x15"), (b"echo of-it", b"\r")):
        before = front(tmux)
        client.type(whole)
        until(lambda before=before: front(tmux) != before, "the keys arrived")
        long_after_the_last_key(tmux)
        assert share.select(two) == {"status": "rejected", "code": "user_active"}, (shell, whole, tmux.screen("=it:"))
        client.type(over)
        share.quiet_context()
    assert share.select(two)["status"] == "applied"


def test_the_cursor_may_stand_anywhere_in_it(shell, tmux, client, share, ids):
    two = ids()["two"]
    share.quiet_context()
    client.type(b"echo half a line")
    until(lambda: "half a line" in tmux.screen("=it:"))
    before = front(tmux)
    client.type(b"\x01")  # Ctrl-A
    until(lambda: front(tmux) != before, "the cursor moved")
    long_after_the_last_key(tmux)
    assert share.select(two) == {"status": "rejected", "code": "user_active"}, (shell, tmux.screen("=it:"))
