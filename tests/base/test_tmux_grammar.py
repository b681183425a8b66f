"""What tmux reads into an argument, asked of real ones: a folder's name is that folder and nothing else."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.tmuxes import new_enough

from termsprawlctl.base.tmux import Tmux, for_format, server_environment
from termsprawlctl.base.waiting import until

ALPHABET = "##[[]{}(),,%;$'\"\\ \n\t~=:!?a+-*Hé|&<>@^"
NAMES = [
    *(
        "#[",
        "a#[b",
        "##[x",
        "###[",
        "#[fg=red]",
        "#[#{x}]",
        "#",
        "##",
        "###",
        "#x",
        "#}",
        "#,",
        "#{pane_id}",
        "#{",
        "#(",
    ),
    *(
        "#(touch ran)",
        "#{?a,b,c}",
        "#{l:x}",
        "#{E:a}",
        "#H",
        "#S",
        "%H",
        "%%",
        "100%",
        ";",
        "a;",
        ";a",
        "$HOME",
        "~",
        "'",
        '"',
    ),
    *("\n", "a\nb", "\\", "\\;", "\\n", "{", "}", "a b", "-c", "=a", "+", "é", "#é", "`touch ran`", "%#[", "#%[", "[#"),
]


def random_names(count: int) -> list[str]:
    draw = random.Random(4711)
    names = {"".join(draw.choices(ALPHABET, k=draw.randint(1, 12))) for _ in range(count)}
    return sorted(names - {".", ".."})


@pytest.fixture(params=new_enough().items(), ids=lambda pair: pair[0])
def server(request, tmp_path_factory):
    """A server of each tmux that is there, in a folder of a short name."""
    folder = tmp_path_factory.mktemp("t")
    tmux = Tmux(request.param[1], "-S", str(folder / "s"), "-f", "/dev/null")
    tmux.run("new-session", "-d", "-s", "first", "sleep", "1000")
    yield tmux
    tmux.run("kill-server")


def test_a_session_starts_in_the_folder_that_is_named(server, tmp_path):
    wrong = []
    for name in [*NAMES, *random_names(25)]:
        folder = tmp_path / name.replace("/", "_")
        folder.mkdir(exist_ok=True)
        pid = server.run("new-window", "-d", "-P", "-F", "#{pane_pid}", "-c", for_format(str(folder)), "sleep", "1000")
        process = Path("/proc", pid.strip())
        until(lambda: (process / "comm").read_text() == "sleep\n", 20, 0.01)  # noqa: B023 - now
        if os.readlink(process / "cwd") != str(folder):
            wrong.append(name)
    assert wrong == []
    assert not (tmp_path / "ran").exists()


def test_a_plain_text_is_left_alone():
    assert for_format("/home/me/a b") == "/home/me/a b"


def test_a_server_is_given_no_trace_of_another_and_all_else():
    given = {"TMUX": "/s,1,0", "TMUX_PANE": "%1", "TERMSPRAWL_SESSION_FILE": "/f", "TMUX_TMPDIR": "/t", "TMUXP_X": "y"}
    assert server_environment(given) == {"TMUX_TMPDIR": "/t", "TMUXP_X": "y"}
