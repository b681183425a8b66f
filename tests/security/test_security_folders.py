"""A terminal in the folder that was asked for, or none: tmux itself would take another one and say nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.terminals.nodes import Terminals
from termsprawlctl.host.terminals.server import Server

pytestmark = pytest.mark.process
ENVIRONMENT = {"TERMSPRAWL_NODE_ID": "n-1"}
WORDS = ["sh", "-c", "echo ready; exec cat"]


@pytest.fixture
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("t")
    (root / "wanted").mkdir()
    (root / "other").mkdir()
    return root / "wanted"


def acting(folder: Path, act: str) -> Terminals:
    """Terminals whose tmux is asked for a new session only after `act`, a shell command, was done."""
    binary = folder.parent / "tmux"
    real = shutil.which("tmux")
    binary.write_text(f'#!/bin/sh\ncase "$*" in *new-session*) {act};; esac\nexec {real} "$@"\n')
    binary.chmod(0o700)
    return Terminals(Server(str(binary), "-S", str(folder.parent / "s"), "-f", "/dev/null"))


@pytest.mark.parametrize(
    "act",
    ["mv {0} {0}.away", "mv {0} {0}.away && mkdir {0}", "mv {0} {0}.away && ln -s other {0}"],
    ids=["gone", "another", "a link"],
)
def test_a_folder_that_is_swapped_while_a_terminal_starts_in_it_is_an_error_and_no_terminal(folder, act):
    terminals = acting(folder, f"cd / && {act.format(folder)}")
    try:
        with pytest.raises(CtlError, match="and not in"):
            terminals.open("n-1", "p-1", str(folder), ENVIRONMENT, WORDS)
        assert terminals.sessions() == {}
    finally:
        terminals.kill_all()


@pytest.mark.parametrize("moves", ["", "cd /; ", "cd ..; exec env PWD=elsewhere "])
def test_a_program_that_goes_elsewhere_by_itself_may(folder, moves):
    terminals = acting(folder, ":")
    try:
        terminals.open("n-1", "p-1", str(folder), ENVIRONMENT, ["sh", "-c", f"{moves}sh -c 'echo; cat'"])
        assert terminals.sessions() == {"n-1": "p-1"}
    finally:
        terminals.kill_all()


def test_a_folder_that_a_link_leads_to_is_that_folder(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    terminals = acting(folder, ":")
    try:
        terminals.open("n-1", "p-1", str(link), ENVIRONMENT, WORDS)
        assert os.path.realpath(terminals.describe("n-1", "#{pane_current_path}").strip()) == str(folder)
    finally:
        terminals.kill_all()
