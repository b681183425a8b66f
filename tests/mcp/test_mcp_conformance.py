"""The official conformance suite against the MCP core, on both wires."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import counterparts
from support.mcp_client import SUPPORT
from support.mcp_http_bridge import HttpBridge

EXPECTED = Path(__file__).resolve().parent / "conformance"
SUITE_S = 120.0
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.counterpart
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_official_suite_finds_no_failure_but_the_expected_ones(ctl, hermetic_env, tmp_path, revision):
    suite = counterparts.program("@modelcontextprotocol/conformance", "conformance")
    node = counterparts.node()
    server = [sys.executable, "-I", "-S", str(SUPPORT / "mcp_conformance.py"), ctl]
    with HttpBridge(server, hermetic_env) as bridge:
        command = [node, suite, "server", "--url", bridge.url, "--requirements", revision, "-o", tmp_path]
        done = subprocess.run(
            [*command, "--expected-failures", EXPECTED / f"expected-{revision}.yml"],
            env={**hermetic_env, "PATH": counterparts.path_with_node(), "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SUITE_S,
            check=False,
        )
    report = COLOURS.sub("", done.stdout.decode())
    assert done.returncode == 0, report[-6000:]
    # The words with which the suite says that it ran, and that each expectation is still needed.
    assert re.search(r"Total: [1-9][0-9]* passed", report), report[-3000:]
    assert "Stale" not in report, report[-3000:]
