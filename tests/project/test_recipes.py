"""docs/recipes.md: each recipe runs as it stands there."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path

import pytest
from support.chosen import plain_path
from support.console_blocks import console_commands, run_commands, shell_environment, stop_host
from support.mcp_app import StandInApp
from support.scripted_acp import WORK, script
from support.scripted_agent import Box
from support.tui_tmux import UserTmux

RECIPES = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
SECTIONS = re.split(r"^## ", RECIPES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
START = 'eval "$(termsprawlctl host start)"'


@pytest.fixture
def shell(ctl, tmp_path_factory, hermetic_env):
    # Short: a socket's path has to fit into some 100 bytes.
    environment, project = shell_environment(ctl, tmp_path_factory.mktemp("r"), hermetic_env)
    yield environment, project
    stop_host(ctl, environment)


@pytest.fixture
def surroundings(shell, ctl, tmp_path, hermetic_env):
    """What a recipe needs around it, by its number; returns (environment, folder, first command)."""
    environment, project = shell
    opened = []

    def prepare(number: int):
        if number == 5:
            tmux = UserTmux(tmp_path, os.pathsep.join([os.path.dirname(ctl), plain_path()]))
            opened.append(tmux.close)
            tmux.new_session("one")
            tmux.new_session("two")
            tmux.attach("one")
            variables = tmux.run("display-message", "-p", "-t", "=one:", "#{socket_path},#{pid},0 #{pane_id}")
            address, pane = variables.split(" ")
            return {**environment, "TMUX": address, "TMUX_PANE": pane}, project, ":"
        if number == 6:
            box = Box(ctl, tmp_path, hermetic_env)
            box.script("begin()\nend('There is a README.')\n")
            script(box, WORK, "gemini")
            return {**environment, "PATH": os.pathsep.join([str(box.bin), environment["PATH"]])}, project, ":"
        if number == 7:
            app = StandInApp(tmp_path).__enter__()
            opened.append(app.stop)
            app.replies["browser_open"] = {"ok": True, "value": {"nodeId": "b-1"}}
            app.replies["browser_screenshot"] = {"ok": True, "value": {"image": base64.b64encode(PNG).decode()}}
            return {**environment, "TERMSPRAWL_SESSION_FILE": app.session}, project, ":"
        return environment, project, START

    yield prepare
    for close in opened:
        close()


def test_there_are_ten():
    assert [int(section.split(".")[0]) for section in SECTIONS] == list(range(1, 11))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split("\n")[0])
def test_a_recipe_works_as_it_stands(section, surroundings):
    environment, folder, before = surroundings(int(section.split(".")[0]))
    commands = console_commands(section)
    assert commands
    # As a script without a terminal: nobody is to be asked at the one that the tests were started from.
    run_commands(commands, environment, folder, before=before, start_new_session=True)
