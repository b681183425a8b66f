"""Rules for the whole package, read out of its syntax trees: what no module does, or only those named here, and why."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "termsprawlctl"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}

# What a rule is about: (module, what it does) -> why it may. A reason that nothing needs any more fails.
ALLOWED = {
    "evaluates": {
        "agents/runs/supervise.py import marshal": "its order comes over a socket pair from its parent",
        "agents/runs/supervise.py marshal.loads": "the same",
    },
    "starts": {
        "base/processes.py subprocess.Popen": "the place for it",
        "agents/runs/child.py subprocess.Popen": "the supervisor of an agent, this same program",
        "agents/runs/supervise.py os.fork": "starts the agent's CLI, whose end it has to see",
        "agents/runs/supervise.py os.execv": "the same",
        "agents/runs/snapshot.py subprocess.Popen": "git, with a cap on what it says",
        "base/processtable.py subprocess.run": "/bin/ps, for a supervisor that imports nothing else",
        "host/terminals/shells/patterns.py subprocess.Popen": "a matcher that can be killed, this same Python",
        "windows/node_terminal.py os.execve": "attach becomes tmux",
        "share/shell.py subprocess.Popen": "a share in the background, this same program",
        "reach/terminal.py os.execve": "attach becomes ssh",
        "reach/guest.py os.fork": "says a word to whoever comes through a forwarding that is tried",
        "reach/guest.py subprocess.run": "runs over there, where there is nothing else of ours",
        "__main__.py os.execv": "starts over isolated, as the file's own first lines do",
    },
    "writes": {
        "base/files.py os.open": "the place for it: O_EXCL under a random name",
        "base/files.py open": "a device or fifo that the user named for output",
        "agents/asking.py os.open": "/dev/tty, to ask the person in front of it",
        "agents/runs/capture.py os.open": "O_EXCL in a private directory, removed from it at once",
        "agents/server/outputs.py os.open": "O_EXCL under a random name; pieces, so not write_atomically",
        "windows/spawn.py os.open": "O_EXCL under a random name; a program, so 0700",
        "share/directory.py open_regular": "O_EXCL in a new directory, or O_NOFOLLOW to ask for its own file's lock",
        "host/daemon/audit.py open_regular": "a log that grows, in a private directory",
        "host/daemon/control.py os.open": "a log that grows, in the data directory",
        "host/daemon/lock.py os.open": "a lock file must stay the same file",
        "host/terminals/shells/latch.py os.open": "a fifo of its own, in a private directory",
        "host/terminals/shells/handover.py os.open": "the terminal's device of a pane",
        "base/console.py os.open": "/dev/null",
        "reach/guest.py os.open": "O_EXCL under a random name; runs where there is nothing else of ours",
        "mcp/stdio.py os.open": "/dev/null, and a pipe that is open already",
    },
    "connects": {
        "app/transport.py": "127.0.0.1 by number, see its HOST",
        "app/peer.py": "the kernel's own table of sockets",
        "windows/displays.py": "the X11 or Wayland display that the user's variables name",
        "share/client.py": "a unix socket, checked by endpoint.py",
        "share/directory.py": "a unix socket, made or checked here",
        "share/sharing/server.py": "the unix socket of directory.py",
        "host/http/server.py": "listens on 127.0.0.1 by number, and on a unix socket in its private directory",
        "agents/runs/child.py": "a pair of sockets, to its own child",
        "doctor/connection.py": "127.0.0.1, see transport.HOST",
        "base/ownership.py": "a unix socket, to ask who listens there",
        "base/waiting.py": "reads from the sockets of others",
        "reach/guest.py": "a unix socket in a new private directory, over there",
        "reach/keeper.py": "waits at the socket of our own ssh process, in a private directory",
        "reach/reaching.py": "127.0.0.1, see transport.HOST: whether our own ssh process forwards",
        "reach/ssh.py": "asks the system for a free port of 127.0.0.1",
    },
}


def dotted(node: ast.AST) -> str:
    """`os.open` of the expression os.open; the last name alone where what stands before is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else ""
        return f"{before}.{node.attr}" if before else node.attr
    return ""


@functools.cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


@functools.cache
def calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    return [(dotted(node.func), node) for node in nodes(tree) if isinstance(node, ast.Call)]


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    return names


def check(rule: str, found: set[str]) -> None:
    allowed = set(ALLOWED[rule])
    assert found - allowed == set(), f"not allowed: {sorted(found - allowed)}"
    assert allowed - found == set(), f"allowed for nothing: {sorted(allowed - found)}"


EVALUATING = {"eval", "exec", "compile", "__import__", "exec_module", "run_path", "run_module", "input", "breakpoint"}
DANGEROUS_MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "yaml",
    "code",
    "codeop",
    "pdb",
    "runpy",
    "dbm",
    "telnetlib",
}


def test_nothing_evaluates_text_as_code_or_as_objects():
    found = set()
    for module, tree in TREES.items():
        for name, _ in calls(tree):
            last = name.rpartition(".")[2]
            if (
                name in EVALUATING
                or last in ("exec_module", "run_path")
                or re.fullmatch(r"(pickle|marshal)\.loads?", name)
            ):
                found.add(f"{module} {name if name.startswith(('marshal', 'pickle')) else last}")
        found |= {f"{module} import {name}" for name in imported(tree) & DANGEROUS_MODULES}
    check("evaluates", found)


def test_nothing_goes_through_a_shell():
    for module, tree in TREES.items():
        for name, node in calls(tree):
            assert name not in ("os.system", "os.popen", "commands.getoutput", "subprocess.getoutput"), module
            assert name not in ("subprocess.getstatusoutput", "asyncio.create_subprocess_shell", "pty.spawn"), module
            assert not any(word.arg == "shell" for word in node.keywords), f"{module}:{node.lineno}"


STARTING = re.compile(
    r"subprocess\.(Popen|run|call|check_call|check_output)|os\.(exec|spawn|posix_spawn|fork|startfile)\w*|pty\.fork"
    r"|asyncio\.create_subprocess_exec|multiprocessing\..*"
)


def test_processes_are_started_in_one_place_or_for_a_reason():
    check(
        "starts",
        {f"{module} {name}" for module, tree in TREES.items() for name, _ in calls(tree) if STARTING.fullmatch(name)},
    )


def opens_for_writing(name: str, node: ast.Call) -> bool:
    if name in ("os.open", "open_regular"):
        return bool(re.search("O_(WRONLY|RDWR|CREAT)", ast.dump(node)))
    if name in ("open", "io.open"):
        mode = node.args[1] if len(node.args) > 1 else next((w.value for w in node.keywords if w.arg == "mode"), None)
        return mode is not None and not (isinstance(mode, ast.Constant) and not set(mode.value) & set("wax+"))
    return name.rpartition(".")[2] in ("write_text", "write_bytes", "copyfile", "copy2", "copytree")


def test_files_are_opened_for_writing_in_one_place_or_for_a_reason():
    found = set()
    for module, tree in TREES.items():
        for name, node in calls(tree):
            if opens_for_writing(name, node):
                found.add(f"{module} {name}")
        # Where the flags of an os.open are put together elsewhere in the module.
        if any(name == "os.open" and not re.search("O_", ast.dump(node)) for name, node in calls(tree)):
            found.add(f"{module} os.open")
    check("writes", found)


def test_a_new_file_is_made_under_a_name_that_nobody_can_take_first():
    for module, tree in TREES.items():
        for name, node in calls(tree):
            assert name.rpartition(".")[2] not in ("mktemp", "tmpnam", "tempnam"), module
            flags = ast.dump(node)
            if (
                name in ("os.open", "open_regular")
                and "O_CREAT" in flags
                and module not in ("host/daemon/audit.py", "host/daemon/control.py", "host/daemon/lock.py")
            ):
                assert "O_EXCL" in flags, f"{module}:{node.lineno}"
            if name == "os.open":
                assert "O_TRUNC" not in flags, f"{module}:{node.lineno}"


def test_sockets_are_used_for_this_machine_only():
    users = {module for module, tree in TREES.items() if imported(tree) & {"_socket", "socket", "socketserver"}}
    helpers = {"app/bridge.py": "shuts a socket of transport.py"}
    check("connects", users - set(helpers))
    for module, tree in TREES.items():
        network = {
            "urllib.request",
            "http.client",
            "http.server",
            "ssl",
            "ftplib",
            "smtplib",
            "xmlrpc.client",
            "asyncore",
        }
        assert not imported(tree) & network, module
        for node in nodes(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                hosts = re.findall(r"https?://([^/:\s\"'{]+)", node.value)
                # The last two name kinds of documents, and are asked for nothing.
                allowed = {"127.0.0.1", "127\\.0\\.0\\.1", "www.apple.com", "www.w3.org"}
                assert set(hosts) <= allowed, f"{module}:{node.lineno} {hosts}"


def test_tokens_are_compared_in_constant_time_and_made_by_the_system():
    for module, tree in TREES.items():
        assert "random" not in imported(tree), module
        for node in nodes(tree):
            if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
                names = {dotted(part).rpartition(".")[2] for part in (node.left, *node.comparators)}
                assert not names & {"token", "_token"}, f"{module}:{node.lineno}"
    for module in ("host/registry/sessions.py", "share/directory.py"):
        sizes = [node.args[0].value for name, node in calls(TREES[module]) if name == "secrets.token_hex"]
        assert sizes == [32], module
    for module in ("host/registry/sessions.py", "share/sharing/server.py"):
        assert "hmac.compare_digest" in {name for name, _ in calls(TREES[module])}, module


def test_a_message_never_quotes_a_token():
    for module, tree in TREES.items():
        for node in nodes(tree):
            if isinstance(node, ast.FormattedValue) and dotted(node.value).rpartition(".")[2] in ("token", "_token"):
                assert module == "app/transport.py", f"{module}:{node.lineno}"  # the Authorization header
        for name, node in calls(tree):
            if name in ("console.err", "console.out", "log", "log.log", "print", "say", "note"):
                assert not re.search(r"id='token'|attr='_?token'", ast.dump(node)), f"{module}:{node.lineno}"


def test_programs_are_found_in_one_place_only():
    for module, tree in TREES.items():
        names = {name for name, _ in calls(tree)} | {
            dotted(node) for node in nodes(tree) if isinstance(node, ast.Attribute)
        }
        assert not names & {"shutil.which", "os.execvp", "os.execvpe", "os.execlp", "distutils.spawn"}, module


def test_every_start_of_python_is_isolated():
    launchers = re.findall(r"exec python3 -(\w+)", (ROOT / "build.py").read_text(encoding="utf-8"))
    assert launchers
    assert all(set("ISB") <= set(flags) for flags in launchers)
    for module, tree in TREES.items():
        for node in nodes(tree):
            if isinstance(node, ast.List) and node.elts and dotted(node.elts[0]) == "sys.executable":
                assert set("ISB") <= set(node.elts[1].value), f"{module}:{node.lineno}"
