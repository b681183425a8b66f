"""Opening a window on a node: the session, the choice, the proof. Real tmux, invented emulators, no display."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.node_server import NodeServer, PtyProgram
from support.processes import is_alive
from support.waiting import until

from termsprawlctl.base.errors import CtlError
from termsprawlctl.windows import external, spawn
from termsprawlctl.windows.displays import usable
from termsprawlctl.windows.node_terminal import NodeTerminal

TOOLS = ("tmux", "sh", "sleep", "rm", "env", "cat")
# What an emulator does once it runs: `argv` is the command that it was given.
WINDOW = "os.environ['TERM'] = 'xterm'; pty.spawn(argv)"
BEHAVIOURS = {
    "opens a window": WINDOW,
    "hands over": f"os.fork() and os._exit(0); os.setsid(); {WINDOW}",
    "exits 1": "sys.exit(1)",
    "leaves a child and exits 1": "os.fork() and os._exit(1); time.sleep(1000)",
    "is killed": "os.kill(os.getpid(), 9)",
    "shows nothing": "time.sleep(1000)",
    "will not end": "signal.signal(15, signal.SIG_IGN); time.sleep(1000)",
    "only controls": "argv.insert(1, '-C'); " + WINDOW,
    "is one of a kind": "subprocess.run([*argv[:-3], 'kill-session', '-t', '=ts-n-1'], check=True); time.sleep(1000)",
}


class Desk:
    """A machine of its own: a PATH with these emulators, a display that accepts, a node server."""

    def __init__(self, ctl: str, root: Path) -> None:
        self.ctl = ctl
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.python = os.path.join(sys.base_prefix, "bin", "python3")
        (self.bin / "python3").symlink_to(self.python)
        self.env = {"PATH": str(self.bin), "HOME": str(root), "LANG": "C.UTF-8"}
        self._display = socket.socket(socket.AF_UNIX)
        self._display.bind(str(root / "wl"))
        self._display.listen()
        self.display = {"WAYLAND_DISPLAY": str(root / "wl")}
        self.server = NodeServer(root / "d a'b", self.env)
        self.server.open("n-1")

    def install(self, name: str, behaviour: str, folder: Path | None = None) -> Path:
        """Put an emulator on PATH that does this; it writes down how it was started."""
        path = (folder or self.bin) / name
        path.write_text(
            f"#!{self.python}\n"
            "import json, os, pty, signal, subprocess, sys, time\n"
            "argv = sys.argv[2:]\n"
            f"note = {str(self.root / (name + '.json'))!r}\n"
            "with open(note + '~', 'w') as stream:\n"
            "    json.dump({'argv': sys.argv, 'env': dict(os.environ), 'pid': os.getpid(), 'sid': os.getsid(0),\n"
            "        'files': [os.readlink(f'/proc/self/fd/{number}') for number in (0, 1, 2)],\n"
            "        'launcher': os.path.isfile(argv[-1]) and open(argv[-1]).read()}, stream)\n"
            "os.rename(note + '~', note)\n"
            f"{BEHAVIOURS[behaviour]}\n"
        )
        path.chmod(0o755)
        return path

    def noted(self, name: str) -> dict:
        """How the emulator was started."""
        return json.loads((self.root / f"{name}.json").read_text())

    def started(self) -> list[str]:
        return sorted(path.stem for path in self.root.glob("*.json"))

    def prefer(self, executable: str, *args: str) -> None:
        wish = {"externalTerminal": {"executable": executable, "args": list(args)}}
        self.server.preferences.write_text(json.dumps(wish))

    def run(self, *words: str, data: Path | None = None, env: dict | None = None) -> subprocess.CompletedProcess:
        argv = [self.ctl, *words, "--data", str(data or self.server.data)]
        return self.run_plainly(argv, env)

    def run_plainly(self, argv: list[str], env: dict | None = None) -> subprocess.CompletedProcess:
        chosen = {**self.env, **self.display} if env is None else env
        return subprocess.run(
            argv, check=False, env=chosen, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )

    def report(self, *words: str, env: dict | None = None) -> dict:
        done = self.run("external", *words, "--json", env=env)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def stop(self) -> None:
        self.server.stop()
        self._display.close()
        for name in self.started():
            if is_alive(self.noted(name)["pid"]):
                os.kill(self.noted(name)["pid"], 15)


def refused(done: subprocess.CompletedProcess, status: int = 1) -> str:
    """The one line that says why nothing was done."""
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def desk(ctl, tmp_path_factory):
    # Short: a socket's path has to fit into some 100 bytes.
    made = Desk(ctl, tmp_path_factory.mktemp("x"))
    yield made
    made.stop()


# --- the window


def test_a_window_is_proved_by_the_client_that_it_brings(desk):
    canvas = desk.server.show_on_canvas("n-1")
    desk.install("kitty", "opens a window")
    report = desk.report("n-1")
    assert report["argv"] == [str(desk.bin / "kitty"), "--", *desk.server.attach_argv("n-1")]
    assert (report["terminal"], report["started"], report["attached"]) == ("kitty", True, True)
    assert report["client"]["tty"] != canvas
    assert sorted(desk.server.clients("n-1")) == sorted([canvas, report["client"]["tty"]])
    assert report["client"] == {"tty": report["client"]["tty"], "width": 80, "height": 24, "term": "xterm"}


def test_the_report_for_people_names_the_window_the_command_and_the_reason(desk):
    desk.install("kitty", "opens a window")
    done = desk.run("external", "n-1")
    (tty,) = desk.server.clients("n-1")
    assert done.returncode == 0
    assert f"opened n-1 in kitty: {tty}, 80x24" in done.stdout
    assert shlex.join([str(desk.bin / "kitty"), "--", *desk.server.attach_argv("n-1")]) in done.stdout
    assert "first known terminal" in done.stdout


def test_an_emulator_that_hands_over_and_exits_is_proved_too(desk):
    desk.install("kitty", "hands over")
    assert desk.report("n-1")["attached"]


def test_the_emulator_stands_alone_and_learns_nothing_of_us(desk):
    desk.install("kitty", "opens a window")
    ours = {"TMUX": "/t,1,0", "TMUX_PANE": "%0", "TERMSPRAWL_SESSION_FILE": "/s.json", "TERMSPRAWL_NODE_ID": "n-9"}
    desk.report("n-1", env={**desk.env, **desk.display, **ours, "XAUTHORITY": "/x"})
    noted = desk.noted("kitty")
    assert noted["sid"] == noted["pid"]
    assert noted["files"] == ["/dev/null"] * 3
    assert [name for name in noted["env"] if name.startswith(("TMUX", "TERMSPRAWL_"))] == []
    assert noted["env"]["XAUTHORITY"] == "/x"


def test_a_display_that_is_gone_is_not_passed_on(desk):
    desk.install("kitty", "opens a window")
    desk.report("n-1", env={**desk.env, **desk.display, "DISPLAY": ":4711"})
    assert "DISPLAY" not in desk.noted("kitty")["env"]


def test_a_window_that_does_not_come_is_told_honestly_and_is_no_failure(desk):
    desk.install("kitty", "shows nothing")
    desk.install("alacritty", "opens a window")
    done = desk.run("external", "n-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "kitty started, but no window has attached yet" in done.stdout
    assert "external --list" in done.stdout
    assert shlex.join(desk.server.attach_argv("n-1")) in done.stdout
    assert desk.started() == ["kitty"]


def test_a_client_that_only_controls_is_no_window(desk):
    desk.install("kitty", "only controls")
    report = external.open_window(
        NodeTerminal(str(desk.server.data), "n-1"), environment={**desk.env, **desk.display}, wait_s=1.0
    )
    assert report.started
    assert report.client is None
    assert len(desk.server.clients("n-1")) == 1


def test_a_closed_window_leaves_the_session_alive_and_no_dead_process_behind(desk):
    desk.install("kitty", "opens a window")
    report = external.open_window(NodeTerminal(str(desk.server.data), "n-1"), environment={**desk.env, **desk.display})
    pid = desk.noted("kitty")["pid"]
    assert desk.server.clients("n-1") == [report.client.tty]
    os.kill(pid, 15)
    until(lambda: not Path(f"/proc/{pid}").exists(), "the emulator to be collected")
    until(lambda: desk.server.clients("n-1") == [], "the client to detach")
    assert desk.server.sessions() == ["ts-n-1"]


# --- failures and the next emulator


@pytest.mark.parametrize("behaviour", ["exits 1", "leaves a child and exits 1", "is killed"])
def test_after_an_emulator_that_fails_at_once_the_next_one_is_tried_and_both_are_told(desk, behaviour):
    desk.install("kitty", behaviour)
    desk.install("alacritty", "opens a window")
    done = desk.run("external", "n-1")
    assert done.returncode == 0
    assert "kitty failed at once" in done.stdout
    assert "opened n-1 in alacritty" in done.stdout
    assert "after kitty" in done.stdout


def test_an_emulator_that_cannot_be_executed_is_passed_over(desk):
    (desk.bin / "kitty").write_text("no program at all")
    (desk.bin / "kitty").chmod(0o755)
    desk.install("alacritty", "opens a window")
    (failure,) = desk.report("n-1")["failed"]
    assert failure["terminal"] == "kitty"
    assert "could not be started: Exec format error" in failure["why"]


def test_when_all_fail_each_is_named_with_a_way_to_attach(desk):
    desk.install("kitty", "exits 1")
    desk.install("alacritty", "is killed")
    told = refused(desk.run("external", "n-1"))
    assert "kitty failed at once (exit status 1)" in told
    assert "alacritty failed at once (killed by signal 9)" in told
    assert shlex.join(desk.server.attach_argv("n-1")) in told


@pytest.mark.parametrize("way", ["--terminal", "preferences"])
def test_after_an_explicit_choice_nothing_else_is_tried(desk, way):
    desk.install("kitty", "exits 1")
    desk.install("alacritty", "opens a window")
    words = ["--terminal", "kitty"]
    if way == "preferences":
        desk.prefer("kitty", "-e", "{command}")
        words = []
    assert "kitty failed at once (exit status 1)" in refused(desk.run("external", "n-1", *words))
    assert desk.started() == ["kitty"]


def test_what_a_failed_emulator_started_is_ended(desk):
    desk.install("kitty", "leaves a child and exits 1")
    refused(desk.run("external", "n-1"))
    group = desk.noted("kitty")["pid"]
    members = lambda: [  # noqa: E731 - polled below
        path.name
        for path in Path("/proc").glob("[0-9]*")
        if is_alive(int(path.name)) and os.getpgid(int(path.name)) == group
    ]
    until(lambda: not members(), "the rest of the emulator to end")


@pytest.mark.parametrize("behaviour", ["shows nothing", "will not end"])
def test_giving_up_ends_the_emulator_that_has_not_come_up(desk, behaviour):
    desk.install("kitty", behaviour)
    argv = [desk.ctl, "external", "n-1", "--data", str(desk.server.data)]
    with subprocess.Popen(argv, env={**desk.env, **desk.display}, stdout=subprocess.PIPE) as waiting:
        until(lambda: desk.started() == ["kitty"], "the emulator to start")
        waiting.send_signal(2)
        assert (waiting.communicate(timeout=20)[0], waiting.returncode) == (b"", 130)
    until(lambda: not is_alive(desk.noted("kitty")["pid"]), "the emulator to end")


# --- the right session


def test_a_node_that_is_gone_never_opens_a_strangers_session(desk):
    desk.install("kitty", "opens a window")
    desk.server.open("build-api")
    told = refused(desk.run("external", "build"))
    assert "node build has no terminal" in told
    assert "build-api, n-1" in told
    assert desk.started() == []
    assert desk.server.clients("build-api") == []


def test_a_node_whose_name_begins_anothers_gets_its_own_session(desk):
    desk.install("kitty", "opens a window")
    desk.server.open("n-10")
    desk.server.open("n-")
    assert desk.report("n-1")["attached"]
    assert (len(desk.server.clients("n-1")), len(desk.server.clients("n-10"))) == (1, 0)


def test_a_session_that_ends_while_the_window_opens_takes_the_emulator_with_it(desk):
    desk.server.open("n-10")
    desk.install("kitty", "is one of a kind")
    told = refused(desk.run("external", "n-1"))
    assert "the terminal of node n-1 ended" in told
    until(lambda: not is_alive(desk.noted("kitty")["pid"]), "the emulator to end")
    assert desk.server.clients("n-10") == []


@pytest.mark.parametrize("node", ["", "../x", "a b", "ts:1", "=n-1", "n.1", "é", "x" * 129, "n-1\n"])
@pytest.mark.parametrize("command", ["external", "attach"])
def test_what_cannot_be_a_node_id_is_refused_before_anything_else(desk, command, node):
    desk.install("kitty", "opens a window")
    done = desk.run_plainly([desk.ctl, command, "--data", str(desk.server.data), "--", node])
    assert "is not a node id" in refused(done, 2)
    assert desk.started() == []


def test_a_data_directory_without_a_server_is_told_with_what_to_start(desk):
    told = refused(desk.run("external", "n-1", data=desk.root / "none"))
    assert "no tmux server" in told
    assert "host start" in told


def test_a_server_that_died_is_told(desk):
    desk.server.tmux("kill-server")
    with socket.socket(socket.AF_UNIX) as leftover:
        desk.server.socket.unlink(missing_ok=True)
        leftover.bind(str(desk.server.socket))
    assert "no tmux server answers" in refused(desk.run("external", "n-1"))


def test_something_else_in_the_sockets_place_is_told(desk):
    other = desk.root / "other"
    (other / "tmux-sockets" / "termsprawl").mkdir(parents=True)
    assert "is not a socket" in refused(desk.run("external", "n-1", data=other))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("command", ["external", "attach"])
def test_a_socket_of_another_user_is_not_talked_to(desk, command):
    desk.install("kitty", "opens a window")
    os.chown(desk.server.socket, 65534, 65534)
    assert "belongs to another user (uid 65534" in refused(desk.run(command, "n-1"))
    assert desk.started() == []


def test_a_socket_out_of_reach_is_told(desk, monkeypatch):
    def stat(path, *_args, **_options):
        raise PermissionError(13, "Permission denied", path)

    node = NodeTerminal(str(desk.server.data), "n-1")
    monkeypatch.setattr("os.stat", stat)
    with pytest.raises(CtlError, match="this user may not reach the tmux socket"):
        node.check()


def test_without_tmux_the_remedy_is_to_install_it(desk):
    (desk.bin / "tmux").unlink()
    assert "tmux is not installed. Install tmux" in refused(desk.run("external", "n-1"))


# --- where the data directory comes from


def test_the_data_directory_follows_from_the_session_file(desk):
    desk.install("kitty", "opens a window")
    session = desk.server.data / "agent-tools" / "sessions" / "n-7.json"
    env = {**desk.env, **desk.display, "TERMSPRAWL_SESSION_FILE": str(session), "TERMSPRAWL_DATA": "/nowhere"}
    assert desk.run_plainly([desk.ctl, "external", "n-1"], env).returncode == 0
    told = refused(desk.run_plainly([desk.ctl, "external", "n-1", "--session", "/a/b/c/d.json"], env))
    assert "no tmux server of /a:" in told


def test_the_hosts_default_data_directory_comes_last(desk):
    desk.install("kitty", "opens a window")
    env = {**desk.env, **desk.display, "TERMSPRAWL_DATA": str(desk.server.data)}
    assert desk.run_plainly([desk.ctl, "external", "n-1"], env).returncode == 0


def test_a_socket_that_lies_elsewhere_is_found_through_its_pointer(desk):
    desk.install("kitty", "opens a window")
    moved = desk.root / "s"
    desk.server.socket.rename(moved)
    (desk.server.socket.parent / "termsprawl.path").write_text(f"{moved}\n")
    report = desk.report("n-1")
    assert report["attached"]
    assert report["argv"][3:5] == ["-S", str(moved)]


# --- displays


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "DISPLAY and WAYLAND_DISPLAY are not set"),
        ({"DISPLAY": ":4711"}, "DISPLAY is :4711, but nothing can be reached there"),
        ({"DISPLAY": "garbage"}, "DISPLAY is garbage, but that is not the name of a display"),
        ({"WAYLAND_DISPLAY": "wayland-9"}, "XDG_RUNTIME_DIR, where its socket would be, is not set"),
        ({"WAYLAND_DISPLAY": "/no/such/socket"}, "WAYLAND_DISPLAY is /no/such/socket, but nothing can be reached"),
        ({"WAYLAND_DISPLAY": "w", "XDG_RUNTIME_DIR": "/tmp", "DISPLAY": ":4711"}, "WAYLAND_DISPLAY is w, but"),
    ],
    ids=str,
)
def test_without_a_display_nothing_is_started_and_the_way_without_a_window_is_shown(desk, variables, told):
    desk.install("kitty", "opens a window")
    text = refused(desk.run("external", "n-1", env={**desk.env, **variables}))
    assert told in text
    assert shlex.join(desk.server.attach_argv("n-1")) in text
    assert f"termsprawlctl attach n-1 --data {shlex.quote(str(desk.server.data))}" in text
    assert desk.started() == []


def test_a_program_of_the_users_own_may_do_without_a_display(desk):
    path = desk.install("remote-window", "opens a window")
    desk.prefer(str(path), "--", "{command}")
    assert desk.report("n-1", env=desk.env)["attached"]


def test_each_form_of_a_display_is_tried_where_it_says():
    asked = []

    def connect(family, address):
        asked.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    for display in (":3", "unix:3.1", "localhost:10.0", "/run/x/org.xquartz:0.0", "remote:0"):
        usable({"DISPLAY": display}, connect)
    assert asked == [
        *["/tmp/.X11-unix/X3", "\0/tmp/.X11-unix/X3"] * 2,
        ("127.0.0.1", 6010),
        "/run/x/org.xquartz:0",
    ]
    assert usable({"DISPLAY": "remote:0"}, connect).kinds == {"x11"}


# --- preferences


def test_the_preferred_terminal_wins_over_the_list(desk):
    desk.install("kitty", "opens a window")
    desk.install("myterm", "opens a window")
    desk.prefer("myterm", "-x", "{command}")
    report = desk.report("n-1")
    assert report["argv"] == [str(desk.bin / "myterm"), "-x", *desk.server.attach_argv("n-1")]
    assert str(desk.server.preferences) in report["reason"]


def test_a_terminal_named_on_the_command_line_wins_over_broken_preferences(desk):
    desk.install("kitty", "opens a window")
    desk.server.preferences.write_text("{")
    assert desk.report("n-1", "--terminal", "kitty")["attached"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("\udcff", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"externalTerminal": {"args": ["{command}"]}}', "executable must be a non-empty string"),
        ('{"externalTerminal": {"executable": "kitty", "args": ["-e"]}}', "exactly one {command} placeholder"),
        ('{"externalTerminal": {"executable": "/gone", "args": ["{command}"]}}', "missing or not executable"),
        ('{"externalTerminal": {"executable": "/etc/passwd", "args": ["{command}"]}}', "missing or not executable"),
        ('{"externalTerminal": {"executable": "./kitty", "args": ["{command}"]}}', "relative path"),
    ],
)
@pytest.mark.parametrize("words", [[], ["--dry-run"]], ids=["start", "dry run"])
def test_bad_preferences_are_one_line_that_names_the_file_and_start_nothing(desk, words, content, told):
    desk.install("kitty", "opens a window")
    desk.server.preferences.write_text(content, errors="surrogateescape")
    text = refused(desk.run("external", "n-1", *words))
    assert told in text
    assert str(desk.server.preferences) in text
    assert desk.started() == []


def test_preferences_that_are_no_file_are_refused(desk):
    desk.server.preferences.mkdir()
    assert "cannot read" in refused(desk.run("external", "n-1"))


# --- launchers


def test_an_emulator_that_takes_one_word_gets_a_private_launcher_that_removes_itself(desk):
    desk.install("tilix", "opens a window")
    private = desk.root / "run"
    private.mkdir(mode=0o700)
    report = desk.report("n-1", env={**desk.env, **desk.display, "XDG_RUNTIME_DIR": str(private)})
    executable, option, launcher = report["argv"]
    assert (executable, option, os.path.dirname(launcher)) == (str(desk.bin / "tilix"), "-e", str(private))
    assert re.fullmatch(r"[A-Za-z0-9/_.-]+", launcher)
    assert f"exec {shlex.join(desk.server.attach_argv('n-1'))}\n" in desk.noted("tilix")["launcher"]
    assert report["attached"]
    assert list(private.iterdir()) == []


def test_the_launcher_of_an_emulator_that_failed_is_removed(desk):
    desk.install("tilix", "exits 1")
    private = desk.root / "run"
    private.mkdir(mode=0o700)
    refused(desk.run("external", "n-1", env={**desk.env, **desk.display, "XDG_RUNTIME_DIR": str(private)}))
    assert list(private.iterdir()) == []


def test_a_launcher_is_for_its_owner_only_and_old_ones_are_swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("l")
    old, recent = folder / "termsprawlctl-attach-0", folder / "termsprawlctl-attach-1"
    for path in (old, recent, folder / "other"):
        path.touch()
        os.utime(path, (1, 1) if path is old else None)
    path = spawn.create_launcher(["true"], {"XDG_RUNTIME_DIR": str(folder)})
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert sorted(folder.iterdir()) == sorted([recent, folder / "other", Path(path)])


def test_a_launcher_avoids_places_whose_path_needs_quotes(tmp_path_factory):
    blank = tmp_path_factory.mktemp("a b")
    good = tmp_path_factory.mktemp("c")
    path = spawn.create_launcher(["true"], {"XDG_RUNTIME_DIR": str(blank), "TMPDIR": str(good)})
    assert os.path.dirname(path) == str(good)


def test_a_launcher_avoids_places_where_others_could_replace_it(tmp_path_factory):
    open_to_all, good = tmp_path_factory.mktemp("open"), tmp_path_factory.mktemp("c")
    open_to_all.chmod(0o777)
    assert spawn.create_launcher(["true"], {"XDG_RUNTIME_DIR": str(open_to_all), "TMPDIR": str(good)}).startswith(
        str(good)
    )
    open_to_all.chmod(0o1777)
    path = spawn.create_launcher(["true"], {"XDG_RUNTIME_DIR": str(open_to_all), "TMPDIR": str(good)})
    assert path.startswith(str(open_to_all))


def test_a_launcher_passes_every_byte_of_the_command_on(tmp_path_factory):
    folder = tmp_path_factory.mktemp("l")
    words = ["a b", "it's", '"', "\\", "$HOME", ";", "`x`", "é", os.fsdecode(b"\xff"), "new\nline", ""]
    show = "import os, sys; print([os.fsencode(word) for word in sys.argv[1:]], os.environ.get('TMUX'))"
    path = spawn.create_launcher([sys.executable, "-c", show, *words], {"XDG_RUNTIME_DIR": str(folder)})
    done = subprocess.run(
        [path], env={"TMUX": "outer", "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{[os.fsencode(word) for word in words]} None\n"
    assert list(folder.iterdir()) == []


# --- telling without doing


def test_a_dry_run_prints_the_command_ready_to_paste_and_starts_nothing(desk):
    desk.install("kitty", "opens a window")
    done = desk.run("external", "n-1", "--dry-run")
    first, *comments = done.stdout.splitlines()
    assert shlex.split(first) == [str(desk.bin / "kitty"), "--", *desk.server.attach_argv("n-1")]
    assert comments == ["# kitty: the first known terminal here"]
    assert (done.returncode, done.stderr, desk.started()) == (0, "", [])


def test_a_dry_run_without_any_terminal_shows_what_one_would_run(desk):
    report = desk.report("n-1", "--dry-run")
    assert report["argv"] == desk.server.attach_argv("n-1")
    assert report["notes"][0].startswith("No supported Linux terminal emulator found.")
    first, *comments = desk.run("external", "n-1", "--dry-run").stdout.splitlines()
    assert shlex.split(first) == desk.server.attach_argv("n-1")
    assert comments[0] == "# no terminal: what a terminal would run"
    assert "No supported Linux terminal emulator found." in refused(desk.run("external", "n-1"))


def test_a_dry_run_notes_what_would_stop_a_real_one(desk):
    desk.install("kitty", "opens a window")
    report = desk.report("n-2", "--dry-run", env=desk.env)
    assert not report["started"]
    assert "node n-2 has no terminal" in report["notes"][0]
    assert "DISPLAY and WAYLAND_DISPLAY are not set" in report["notes"][1]


def test_a_dry_run_shows_what_the_launcher_would_run(desk):
    desk.install("sakura", "opens a window")
    done = desk.run("external", "n-1", "--dry-run")
    assert shlex.split(done.stdout.splitlines()[0]) == [str(desk.bin / "sakura"), "-e", "{launcher}"]
    assert shlex.join(desk.server.attach_argv("n-1")) in done.stdout


def test_the_list_tells_what_is_installed_and_how_it_is_called(desk):
    desk.install("kitty", "opens a window")
    done = desk.run_plainly([desk.ctl, "external", "--list"])
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert lines[0][0] == "x-terminal-emulator"
    assert lines[0][1].startswith("not found")
    assert dict(lines)["kitty"] == f"{desk.bin / 'kitty'}  kitty -- COMMAND ARGS..."
    rows = json.loads(desk.run_plainly([desk.ctl, "external", "--list", "--json"]).stdout)
    assert [row["terminal"] for row in rows] == [name for name, _ in lines]


@pytest.mark.parametrize("words", [[], ["--list", "n-1"], ["--list", "--dry-run"], ["a", "b"], ["n-1", "--terminal"]])
def test_a_command_line_that_makes_no_sense_is_refused(desk, words):
    done = desk.run_plainly([desk.ctl, "external", *words])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_an_unknown_terminal_is_refused(desk):
    desk.install("kitty", "opens a window")
    assert "--terminal notepad is not a known terminal" in refused(
        desk.run("external", "n-1", "--terminal", "notepad"), 2
    )


# --- in this terminal


def attaching(desk, node: str, **env: str) -> PtyProgram:
    argv = [desk.ctl, "attach", node, "--data", str(desk.server.data)]
    return PtyProgram(argv, {**desk.env, **env})


def test_attach_shows_the_node_in_this_terminal_next_to_the_canvas(desk):
    canvas = desk.server.show_on_canvas("n-1")
    program = attaching(desk, "n-1")
    try:
        until(lambda: b"THIS IS n-1" in program.output, "the node's text")
        assert len(desk.server.clients("n-1")) == 2
        program.type(b"\x02d")
        status, output = program.ended()
    finally:
        program.stop()
    assert status == 0
    assert "[detached" in output
    assert desk.server.clients("n-1") == [canvas]


def test_attach_works_inside_another_tmux(desk):
    program = attaching(desk, "n-1", TMUX="/elsewhere,1,0", TMUX_PANE="%0")
    try:
        until(lambda: b"THIS IS n-1" in program.output, "the node's text")
    finally:
        program.stop()


def test_attach_in_the_nodes_own_terminal_is_refused(desk):
    pane = desk.server.tmux("display-message", "-p", "-t", "=ts-n-1:", "#{pane_id}").strip()
    inside = {"TMUX": f"{desk.server.socket},1,0", "TMUX_PANE": pane}
    program = attaching(desk, "n-1", **inside)
    status, output = program.ended()
    program.stop()
    assert status == 1
    assert "this is the terminal of node n-1 already" in output
    desk.server.open("n-2")
    program = attaching(desk, "n-2", **inside)
    try:
        until(lambda: b"THIS IS n-2" in program.output, "the other node's text")
    finally:
        program.stop()


def test_attach_without_a_terminal_says_what_it_needs(desk):
    assert "needs a terminal on standard input" in refused(desk.run("attach", "n-1"))


def test_attach_to_a_node_that_is_gone_never_opens_a_strangers_session(desk):
    desk.server.open("build-api")
    assert "node build has no terminal" in refused(desk.run("attach", "build"))


def test_nobody_but_the_caller_is_asked_for_the_environment(desk):
    """A host hands its own environment in; nothing is taken from anywhere else."""
    desk.install("kitty", "opens a window")
    with pytest.raises(CtlError, match="DISPLAY and WAYLAND_DISPLAY are not set"):
        external.open_window(NodeTerminal(str(desk.server.data), "n-1"), environment=desk.env)
