"""What around the program decides about it: sandbox, proxies, tmux, terminals, Python, locale."""

from __future__ import annotations

import os
import sys

from .. import __version__
from ..base import tmux
from ..base.errors import CtlError
from ..base.processes import run
from ..windows import displays, emulators, external
from .checks import Check, Seen, ok, surrounding, warning

FLATPAK_INFO = "/.flatpak-info"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")


def sandbox(environment, exists=os.path.exists) -> str:
    """The sandbox that this process says it runs in, for people; "" for none that is known."""
    if environment.get("CODEX_SANDBOX_NETWORK_DISABLED"):
        return "Codex without network (CODEX_SANDBOX_NETWORK_DISABLED is set)"
    if environment.get("CODEX_SANDBOX"):
        return f"Codex (CODEX_SANDBOX is {environment['CODEX_SANDBOX']})"
    if environment.get("SANDBOX_RUNTIME"):
        return "Claude Code (SANDBOX_RUNTIME is set)"
    if environment.get("FLATPAK_ID") or exists(FLATPAK_INFO):
        return f"Flatpak ({FLATPAK_INFO})"
    return ""


@surrounding
def check_sandbox(seen: Seen) -> Check:
    """Whether a sandbox is around, and is why nothing was reached."""
    name = seen.sandbox
    if not name:
        return ok("sandbox", "none that is known")
    if seen.reached:
        return ok("sandbox", f"{name}; it lets loopback through")
    kind = name.split(" ", 1)[0]
    cause = {
        "Codex": "without network every connect() fails with EPERM, also to 127.0.0.1; that is not the app's fault",
        "Claude": "commands in its sandbox have a loopback of their own, so that the app's port is refused or EPERM",
        "Flatpak": "it hides the host's files and programs, and perhaps its network",
    }[kind]
    fix = {
        "Codex": "approve the command outside the sandbox, or: codex -c sandbox_workspace_write.network_access=true",
        "Claude": "add termsprawlctl to sandbox.excludedCommands in Claude Code's settings",
        "Flatpak": "flatpak-spawn --host termsprawlctl doctor",
    }[kind]
    return warning("sandbox", name, cause, fix)


@surrounding
def check_proxies(seen: Seen) -> Check:
    """Names only: the values may hold passwords."""
    found = sorted({name for name, value in seen.environment.items() if name.lower() in _PROXIES and value})
    if not found:
        return ok("proxies", "none set")
    return ok("proxies", f"{', '.join(found)} set; harmless: calls never use a proxy")


@surrounding
def check_tmux(_seen: Seen) -> Check:
    """Only the embedded host, attach, external and tui need it."""
    try:
        binary = tmux.find()
        version = run([binary, "-V"], timeout_s=tmux.COMMAND_TIMEOUT_S).stdout.decode("utf-8", "replace").strip()
    except CtlError as error:
        cause = "host, attach, external and tui need it; call, doctor and mcp do not"
        return warning("tmux", error.message, cause, error.remedy or "install tmux 3.2 or newer")
    return ok("tmux", f"{version}, {binary}")


@surrounding
def check_terminals(seen: Seen) -> Check:
    """For `external`: an emulator and a display."""
    found = emulators.inventory(external.finder(seen.environment), system=os.uname().sysname)
    names = [row.emulator.name for row in found if row.executable]
    display = displays.usable(seen.environment)
    evidence = ", ".join(names) or "none found"
    if not names:
        return warning("terminals", evidence, "external opens none of them without one", "sudo apt-get install xterm")
    if display.problem and os.uname().sysname != "Darwin":
        cause = f"no window can be opened: {display.problem}"
        return warning("terminals", evidence, cause, "termsprawlctl attach NODE_ID shows a terminal right here")
    return ok("terminals", f"{evidence}; display: {', '.join(sorted(display.kinds)) or 'the system'}")


@surrounding
def check_program(_seen: Seen) -> Check:
    """Which file runs, with which Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    path = os.path.abspath(sys.argv[0])
    return ok("program", f"termsprawlctl {__version__}, {path}, Python {version}, {sys.executable}")


@surrounding
def check_locale(seen: Seen) -> Check:
    """In and output are UTF-8 whatever the locale says; other programs may differ."""
    name = next((f"{key}={seen.environment[key]}" for key in _LOCALE if seen.environment.get(key)), "not set")
    if "utf8" in name.lower().replace("-", ""):
        return ok("locale", name)
    return ok("locale", f"{name}; harmless: in- and output are UTF-8 all the same")
