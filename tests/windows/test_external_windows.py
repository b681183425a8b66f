"""Real terminal emulators on a private X server: each shows the node that was asked for.

Emulators that are not installed are skipped; tests/counterparts/apt-terminals.txt lists
the packages of those that always run.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import chosen
from support.node_server import NodeServer
from support.running_host import RunningHost
from support.waiting import until
from support.x11_server import Compositor, MessageBus, XServer, bands, shows

pytestmark = pytest.mark.counterpart

# Everything that a shell, a script or an emulator could trip over.
AWKWARD = "a b'c\"d;e$f é&"
ON_X11 = [
    "x-terminal-emulator", "kitty", "alacritty", "gnome-terminal", "konsole", "xterm", "kgx", "xfce4-terminal",
    "mate-terminal", "terminator", "lxterminal", "qterminal", "st", "urxvt", "tilix", "sakura", "terminology",
]  # fmt: skip
TEXT = "TERMSPRAWL SHOWS THIS LINE 4711"
SOMETHING_ELSE = "TERMSPRAWL SHOWS THIS LINE 4712"


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


@pytest.fixture
def screen(tmp_path_factory):
    need("Xvfb")
    server = XServer(tmp_path_factory.mktemp("xvfb"))
    yield server
    # Programs that still show something end with it.
    server.stop()


@pytest.fixture
def place(screen, tmp_path_factory):
    """(environment with the display, node server on an awkward path); n-10 is a decoy."""
    root = tmp_path_factory.mktemp("x")
    # Its own python3 first: a version manager's shim costs more than a test.
    path = chosen.plain_path()
    env = {"PATH": path, "HOME": str(root), "LANG": "C.UTF-8", **screen.environment}
    bus = MessageBus(root, env)
    env.update(bus.environment)
    server = NodeServer(root / AWKWARD, {**env, "PATH": os.path.dirname(shutil.which("tmux")) + os.pathsep + path})
    server.open("n-1")
    server.open("n-10")
    yield env, server
    server.stop()
    bus.stop()


def external(ctl: str, env: dict[str, str], data: Path, *words: str) -> dict:
    argv = [ctl, "external", "n-1", "--data", str(data), "--json", *words]
    done = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def prove(ctl: str, env: dict[str, str], server: NodeServer, name: str, close) -> None:
    """Open a window with an emulator, next to the canvas, and close it again with `close(tty)`."""
    canvas = server.show_on_canvas("n-1")
    report = external(ctl, env, server.data, "--terminal", name)
    # A busy machine may need longer than the command waits for its proof.
    (tty,) = until(lambda: set(server.clients("n-1")) - {canvas}, f"the window of {name}: {report}")
    assert report["client"] is None or report["client"]["tty"] == tty
    assert server.clients("n-10") == []
    close(tty)
    until(lambda: server.clients("n-1") == [canvas], f"{name} to detach and nothing else")
    assert sorted(server.sessions()) == ["ts-n-1", "ts-n-10"]


@pytest.mark.parametrize("name", ON_X11)
def test_an_emulator_shows_the_node_and_closing_its_window_only_detaches(ctl, screen, place, name):
    need(name)
    env, server = place

    def close(_tty: str) -> None:
        # The client attaches before its window is on the screen.
        for window in until(screen.windows, f"the window of {name} on the screen"):
            screen.close_window(window)
        try:
            until(lambda: len(server.clients("n-1")) == 1, "the window to close", patience_s=2)
        except AssertionError:
            # It asks whether a running program may be ended: no answer, the display goes away.
            for window in screen.windows():
                screen.cut_off(window)

    prove(ctl, env, server, name, close)


@pytest.mark.parametrize("name", ["foot", "footclient"])
def test_an_emulator_of_wayland_shows_the_node_too(ctl, screen, place, tmp_path_factory, name):
    need(name, "weston")
    env, server = place
    compositor = Compositor(screen, tmp_path_factory.mktemp("w"))
    env = {key: value for key, value in env.items() if key != "DISPLAY"} | compositor.environment
    listening = None
    if name == "footclient":
        listening = subprocess.Popen(["foot", "--server"], env=env, stderr=subprocess.DEVNULL)
        sockets = Path(env["XDG_RUNTIME_DIR"])
        until(lambda: list(sockets.glob("foot-*.sock")), "foot's server")
    try:

        def close(tty: str) -> None:
            pids = server.tmux("list-clients", "-t", "=ts-n-1", "-F", "#{client_tty} #{client_pid}")
            (pid,) = [line.split()[1] for line in pids.splitlines() if line.split()[0] == tty]
            # No tool closes another program's window here: end the one that drew it.
            emulator = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(int(emulator), 15)

        prove(ctl, env, server, name, close)
    finally:
        if listening:
            listening.terminate()
            listening.wait()
        compositor.stop()


@pytest.mark.parametrize("name", ["sakura", "terminology", "tilix"])
def test_a_default_terminal_that_takes_one_word_shows_the_node(ctl, screen, place, tmp_path, name):
    need(name)
    env, server = place
    (tmp_path / "x-terminal-emulator").symlink_to(shutil.which(name))
    env = {**env, "PATH": f"{tmp_path}{os.pathsep}{env['PATH']}"}

    def close(_tty: str) -> None:
        for window in until(screen.windows, f"the window of {name} on the screen"):
            screen.cut_off(window)

    prove(ctl, env, server, "x-terminal-emulator", close)


def test_the_window_of_a_hosts_node_shows_the_text_of_its_shell(ctl, screen, tmp_path_factory):
    need("xterm")
    root = tmp_path_factory.mktemp("h")
    picture = picture_of(TEXT, screen, root)
    other = picture_of(SOMETHING_ELSE, screen, root)
    host = RunningHost(ctl, root, host_environment(root, screen))
    host.start()
    try:
        node = host.value("terminal_open")["nodeId"]
        # Put together by the shell: what was typed does not hold the text.
        begin, end = TEXT.split(" ", 1)
        host.value("terminal_submit", nodeId=node, command=f"clear; printf '{begin} %s\\n' '{end}'")
        host.wait_for_text(node, TEXT)
        assert not shows(screen.screenshot(), picture)
        done = host.run("external", node, "--data", str(host.data))
        assert done.returncode == 0, done.stderr
        assert b"in xterm" in done.stdout
        until(lambda: shows(screen.screenshot(), picture), "the shell's text on the screen")
        assert not shows(screen.screenshot(), other)
    finally:
        host.stop("--kill-sessions")
    until(lambda: not screen.windows(), "the window to go with its session")


def test_a_host_opens_the_window_for_an_agent(ctl, screen, tmp_path_factory):
    need("xterm")
    root = tmp_path_factory.mktemp("h")
    host = RunningHost(ctl, root, host_environment(root, screen))
    host.start()
    try:
        node = host.value("terminal_open")["nodeId"]
        assert host.value("terminal_external", nodeId=node) == {
            "nodeId": node,
            "attached": True,
            "confirmed": True,
        }
        assert len(host.tmux("list-clients", "-t", f"=ts-{node}").stdout.splitlines()) == 1
        assert host.value("terminal_read", nodeId=node)["nodeId"] == node
    finally:
        host.stop("--kill-sessions")
    until(lambda: not screen.windows(), "the window to go with its session")


def host_environment(root: Path, screen: XServer) -> dict[str, str]:
    """A PATH with everything but terminals, so that the search finds xterm and nothing before it."""
    folder = root / "bin"
    folder.mkdir()
    for tool in ("tmux", "sh", "bash", "clear", "sleep", "xterm"):
        (folder / tool).symlink_to(shutil.which(tool))
    (folder / "python3").symlink_to(os.path.join(sys.base_prefix, "bin", "python3"))
    return {"PATH": str(folder), "HOME": str(root), "SHELL": "/bin/bash", "LANG": "C.UTF-8", **screen.environment}


def picture_of(text: str, screen: XServer, root: Path) -> list[bytes]:
    """The pixels of a line of text (without descenders) as a plain xterm draws them."""
    # Twice: when both lines look the same, both are whole. Without cursor and border: only text is dark.
    script = f"printf '\\033[?25l%s\\r\\n%s' {shlex.quote(text)} {shlex.quote(text)}; exec sleep 1000"
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", **screen.environment}
    program = subprocess.Popen(["xterm", "-bw", "0", "-e", "sh", "-c", script], env=env, stderr=subprocess.DEVNULL)

    def both_lines() -> list[bytes] | None:
        lines = bands(screen.screenshot())
        return lines[0] if len(lines) == 2 and lines[0] == lines[1] else None

    try:
        return until(both_lines, "the reference picture")
    finally:
        program.terminate()
        program.wait()
        until(lambda: not screen.windows(), "the reference window to go")
