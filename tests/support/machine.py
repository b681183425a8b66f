"""On what figures were measured: the machine and the versions of what took part."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from .counterparts import INSTALLED


def described(program: str) -> dict[str, str]:
    """What to print above a table, by name; `program` is the built file."""
    data = Path(program).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return {
        "machine": f"{os.cpu_count()} x {_cpu()}, {_memory_gib():.0f} GiB, load {os.getloadavg()[0]:.1f}",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "node": _version("node", "--version"),
        "tmux": _version("tmux", "-V"),
        "sdks": f"Python {_python_sdk()}, TypeScript {installed('@modelcontextprotocol/sdk')}",
        "codex": installed("@openai/codex"),
        "file": f"{_version(program, '--version')}, {len(data) / 1024:.0f} KiB, sha256 {digest}",
    }


def installed(package: str) -> str:
    """The version of an npm counterpart, as it was installed."""
    version = INSTALLED / "node" / package.replace("/", "+") / "version"
    return version.read_text().strip() if version.is_file() else "not installed"


def _python_sdk() -> str:
    pinned = INSTALLED / "python" / "requirements.txt"
    if not pinned.is_file():
        return "not installed"
    return next(line.partition("==")[2] for line in pinned.read_text().splitlines() if line.startswith("mcp=="))


def _cpu() -> str:
    lines = _read("/proc/cpuinfo").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    except (OSError, ValueError):
        return 0.0


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _version(program: str, option: str) -> str:
    found = shutil.which(program)
    if not found:
        return "not installed"
    return subprocess.run([found, option], capture_output=True, text=True, check=False).stdout.strip()
