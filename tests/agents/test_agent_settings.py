"""Variables, flags and folders; arguments of the tools."""

from __future__ import annotations

import os

import pytest

from termsprawlctl.agents.model.arguments import BadArguments, RunCall, run_id, wait_s
from termsprawlctl.agents.model.settings import from_environment
from termsprawlctl.agents.server.folders import Folders


def read(**variables):
    warnings = []
    return from_environment(
        {f"AGENT_CLI_MCP_{name}": value for name, value in variables.items()}, warnings.append
    ), warnings


def test_the_built_in_defaults_hold_without_any_variable():
    settings, warnings = read()
    assert (settings.timeout_s, settings.heartbeat_s) == (1800, 10)
    assert (settings.structured, settings.trace) == (True, True)
    assert (settings.model, settings.effort, settings.cwd) == ("", "", "")
    assert warnings == []


def test_each_variable_is_read():
    settings, warnings = read(
        TIMEOUT_MS="2500", HEARTBEAT_MS="100", MODEL=" m ", EFFORT="high", CWD="/srv", STRUCTURED="0", TRACE="0"
    )
    assert (settings.timeout_s, settings.heartbeat_s) == (2.5, 0.1)
    assert (settings.structured, settings.trace) == (False, False)
    assert (settings.model, settings.effort, settings.cwd) == ("m", "high", "/srv")
    assert warnings == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TIMEOUT_MS", "soon"),
        ("TIMEOUT_MS", "0"),
        ("TIMEOUT_MS", "-5"),
        ("TIMEOUT_MS", "1e3"),
        ("TIMEOUT_MS", "9" * 20),
        ("TIMEOUT_MS", "9" * 5000),
        ("TIMEOUT_MS", "²"),
        ("TIMEOUT_MS", "٣٠"),
        ("HEARTBEAT_MS", "10s"),
        ("STRUCTURED", "yes"),
        ("TRACE", "false"),
        ("EFFORT", "extreme"),
    ],
)
def test_a_bad_variable_is_named_once_and_its_default_holds(name, value):
    settings, warnings = read(**{name: value})
    defaults, _ = read()
    assert len(warnings) == 1
    assert f"AGENT_CLI_MCP_{name}" in warnings[0]
    assert "\n" not in warnings[0]
    for field in ("timeout_s", "heartbeat_s", "structured", "trace", "effort"):
        assert getattr(settings, field) == getattr(defaults, field)


@pytest.mark.parametrize("wanted", ["", "  ", "relative/path", "/no/such/folder", "nul\0"])
def test_a_folder_that_cannot_be_used_never_fails_a_run(tmp_path, wanted):
    warnings = []
    assert Folders(str(tmp_path), warnings.append).choose(wanted)[0] == str(tmp_path)
    assert bool(warnings) == bool(wanted.strip())


def test_a_default_folder_that_cannot_be_used_is_warned_of_once(tmp_path):
    warnings = []
    folders = Folders("/no/such/default", warnings.append)
    first, _ = folders.choose("")
    assert folders.choose("/neither/this")[0] == folders.choose("/neither/this")[0] == first
    folders.close()
    assert [warning.split()[0] for warning in warnings] == ["the", "cwd", "cwd"]


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    warnings = []
    assert Folders(str(tmp_path), warnings.append).choose(str(file))[0] == str(tmp_path)
    assert "is no directory" in warnings[0]


def test_one_temporary_workspace_serves_all_runs_and_goes_only_if_it_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    warnings = []
    folders = Folders("/no/such/default", warnings.append)
    first, _ = folders.choose("")
    assert folders.choose("")[0] == first
    assert os.stat(first).st_mode & 0o777 == 0o700
    folders.close()
    assert not os.path.exists(first)
    second, _ = folders.choose("")
    with open(os.path.join(second, "work"), "w"):
        pass
    folders.close()
    assert os.path.exists(second)
    os.unlink(os.path.join(second, "work"))
    os.rmdir(second)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "prompt"),
        ({"prompt": " \n"}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": "p", "cwd": 1}, "cwd"),
        ({"prompt": "p", "model": ["m"]}, "model"),
        ({"prompt": "p", "model": "a\0b"}, "model"),
        ({"prompt": "p", "model": "m" * 200_000}, "model"),
        ({"prompt": "p", "effort": "max"}, "effort"),
        ({"prompt": "p", "sessionId": "--last"}, "sessionId"),
        ({"prompt": "p", "sessionId": "a b"}, "sessionId"),
        ({"prompt": "p", "background": "yes"}, "background"),
        ({"prompt": "p", "timeout": 5}, "timeout"),
    ],
)
def test_a_bad_argument_of_run_is_named(arguments, field):
    with pytest.raises(BadArguments, match=field):
        RunCall(arguments)


def test_null_counts_as_not_given():
    call = RunCall({"prompt": "p", "cwd": None, "model": None, "effort": None, "sessionId": None, "background": None})
    assert (call.cwd, call.model, call.effort, call.session_id, call.background) == ("", "", "", "", False)


def test_lone_surrogates_are_replaced():
    call = RunCall({"prompt": "a\ud800b", "model": "m\udfff", "cwd": "/x\ud83e"})
    assert (call.prompt, call.model, call.cwd) == ("a\ufffdb", "m\ufffd", "/x\ufffd")


def test_run_ids_and_waits_are_checked():
    assert run_id("run_status", {}, required=False) == ""
    assert wait_s({"waitMs": 1500}) == 1.5
    for bad in ({}, {"runId": "x"}, {"runId": "run-0123456789ab", "extra": 1}):
        with pytest.raises(BadArguments):
            run_id("run_result", bad, required=True)
    for bad in (-1, 60_000, True, "5"):
        with pytest.raises(BadArguments):
            wait_s({"waitMs": bad})
