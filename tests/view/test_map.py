"""`map`: the canvas drawn in characters and as SVG, from any nodes, and from a real host."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.node_server import PtyProgram
from support.waiting import until

from termsprawlctl.view import grid, model, svg, text


def node(node_id: str, x: float, y: float, width: float = 720, height: float = 420, **more) -> dict:
    data = {"title": more.pop("title", node_id), **more.pop("data", {})}
    return {
        "id": node_id,
        "type": more.pop("kind", "terminal"),
        "position": {"x": x, "y": y},
        "style": {"width": width, "height": height},
        "data": data,
        **more,
    }


def picture(*nodes: dict, runs: dict | None = None, links=(), known: bool = True) -> model.Picture:
    return model.picture(list(nodes), runs or {}, list(links), known=known)


def drawn(shown: model.Picture, columns: int = 80, rows: int | None = None) -> list[str]:
    return text.draw(shown, columns, rows)


# What there is to draw


def test_positions_inside_groups_become_absolute():
    shown = picture(
        node("a", 10, 20, parentId="inner"),
        node("inner", 100, 200, kind="group", parentId="outer"),
        node("outer", 1000, 2000, kind="group"),
    )
    assert [(box.id, box.x, box.y, box.depth) for box in shown.boxes] == [
        ("outer", 1000, 2000, 0),
        ("inner", 1100, 2200, 1),
        ("a", 1110, 2220, 2),
    ]


def test_what_runs_and_what_has_ended_is_told_apart_from_what_is_not_known():
    nodes = [node("a", 0, 0), node("b", 0, 0), node("s", 0, 0, kind="sticky")]
    seen = {box.id: (box.runs, box.ended) for box in picture(*nodes, runs={"a": "npm"}).boxes}
    assert seen == {"a": ("npm", False), "b": ("", True), "s": ("", False)}
    unknown = picture(*nodes, known=False)
    assert [box.ended for box in unknown.boxes] == [False, False, False]


def test_the_host_tells_what_has_ended_where_tmux_cannot_be_asked_and_tmux_knows_best():
    marked = [node("a", 0, 0, ended=True), node("b", 0, 0), node("s", 0, 0, kind="sticky", ended=True)]
    assert [box.ended for box in picture(*marked, known=False).boxes] == [True, False, False]
    assert [box.ended for box in picture(*marked, runs={"a": "bash"}).boxes] == [False, True, False]


def test_a_circle_of_parents_and_nonsense_are_drawn_all_the_same():
    shown = model.picture(
        [
            {"id": "a", "parentId": "b", "position": {"x": 1, "y": float("nan")}},
            {"id": "b", "parentId": "a", "style": {"width": "wide", "height": -5}},
            {"id": "c", "parentId": "gone", "position": None, "data": [], "type": 7},
            {"id": "d", "position": {"x": 1e300, "y": True}, "style": {"width": float("inf")}},
            "no node",
            {"id": 5},
        ],
        {},
        [("a", "gone"), ("a", "a"), ("a", "b")],
        known=True,
    )
    assert {box.id for box in shown.boxes} == {"a", "b", "c", "d"}
    assert shown.links == [model.Link("a", "b")]
    assert drawn(shown)
    assert model.picture(None, {}, [], known=True).boxes == []
    assert drawn(model.picture([], {}, [], known=True)) == ["(the canvas is empty)"]


@pytest.mark.parametrize("title", ["\x1b[31mred", "a\nb", "\x9b2J", "\u202eabc", "\x07bell", "a\x00b", "a\uffffb"])
def test_nothing_in_a_title_reaches_the_terminal_as_a_command(title):
    shown = picture(node("n", 0, 0, title=title, data={"text": title}), runs={"n": title})
    for line in [*drawn(shown), *text.legend(shown, 80)]:
        assert re.fullmatch(r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e]*", line)
    ET.fromstring(svg.draw(shown))


# In characters


def test_boxes_are_to_scale_with_titles_kinds_and_what_runs_in_them():
    shown = picture(
        node("n-1", 0, 0, title="build"),
        node("n-2", 760, 0, title="server"),
        node("s-1", 1520, 0, 280, 200, kind="sticky", data={"text": "ship it, then rest"}),
        runs={"n-1": "npm"},
        links=[("n-1", "n-2")],
    )
    assert drawn(shown, 90) == [
        "┌ build ───────────────────────────┐  ┌ server ──────────────────────────┐  ╭ s-1 ───────╮",
        "│ terminal n-1                     │  │ terminal n-2                     │  │ ship it,   │",
        "│ npm                              │  │ ended                            │  │ then rest  │",
        "│                                  │  │                                  │  │            │",
        "│                                  │─▶│                                  │  ╰────────────╯",
        "│                                  │  │                                  │",
        "│                                  │  │                                  │",
        "│                                  │  │                                  │",
        "│                                  │  │                                  │",
        "└──────────────────────────────────┘  └──────────────────────────────────┘",
    ]


def test_a_group_is_a_frame_around_its_nodes():
    shown = picture(node("g", 0, 0, 800, 520, kind="group", title="Team"), node("a", 40, 64, parentId="g"))
    lines = drawn(shown, 50)
    assert lines[0].startswith("┌ Team ╌")
    assert lines[0].endswith("╌┐")
    assert lines[-1].startswith("└╌")
    assert lines[2].startswith("╎ ┌ a ─")


@pytest.mark.parametrize(
    ("x", "y", "arrow"), [(2000, 0, "▶"), (-2000, 0, "◀"), (0, 2000, "▼"), (0, -2000, "▲"), (2000, 2000, "▼")]
)
def test_a_link_ends_in_an_arrow_towards_its_recipient(x, y, arrow):
    shown = picture(node("a", 0, 0), node("b", x, y), links=[("a", "b")])
    everything = "\n".join(drawn(shown, 100))
    assert [mark for mark in "▶◀▼▲" if mark in everything] == [arrow]
    assert ("╮" in everything) == (x == y)


def test_what_is_too_small_for_words_stands_in_the_legend():
    shown = picture(node("far", 100_000, 0, title="far away"), node("n", 0, 0, title="a long title"))
    lines = drawn(shown, 60)
    assert max(map(grid.width, lines)) <= 60
    assert any("a…" in line or "┌──┐" in line for line in lines)
    words = "\n".join(text.legend(shown, 60))
    assert "n  terminal  a long title" in words
    assert "far  terminal  far away" in words


def test_wide_characters_take_two_cells_and_are_never_cut_in_half():
    shown = picture(node("n", 0, 0, title="漢字の長い題名はここで切れます" * 3))
    (width,) = {grid.width(line) for line in drawn(shown, 80)}
    assert width == 45
    cells = grid.Grid(6, 1)
    cells.put(0, 0, "漢字漢")
    cells.put(1, 0, "x")
    cells.put(4, 0, "y")
    assert cells.lines(colour=False) == [" x字y"]


def test_colours_are_put_around_the_text_and_change_nothing_else():
    shown = picture(node("n", 0, 0, title="build"), node("s", 800, 0, kind="sticky"), runs={"n": "sh"})
    plain, coloured = text.draw(shown, 90), text.draw(shown, 90, colour=True)
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in coloured] == plain
    assert coloured[0].startswith("\x1b[32m┌ build")
    assert all(line.endswith("\x1b[0m") for line in coloured)


numbers = st.floats(-2e6, 2e6) | st.integers(-(10**7), 10**7) | st.none()
any_nodes = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from("abcdef"), "type": st.sampled_from(["terminal", "group", "sticky", "editor", None])},
        optional={
            "position": st.fixed_dictionaries({"x": numbers, "y": numbers}),
            "style": st.fixed_dictionaries({"width": numbers, "height": numbers}),
            "parentId": st.sampled_from("abcdefg"),
            "data": st.fixed_dictionaries({"title": st.text(max_size=12), "text": st.text(max_size=30)}),
        },
    ),
    max_size=6,
)
any_links = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=4)


@given(any_nodes, any_links, st.integers(1, 150), st.integers(1, 60))
def test_any_canvas_is_drawn_within_the_columns(nodes, links, columns, rows):
    shown = model.picture(nodes, {"a": "x"}, links, known=True)
    for line in text.draw(shown, columns, rows):
        assert grid.width(line) <= max(columns, text.MIN_COLUMNS, 0 if shown.boxes else 30)
    assert len(text.draw(shown, columns, rows)) <= rows + text.MIN_ROWS + 1
    root = ET.fromstring(svg.draw(shown))
    assert len(root.findall("{http://www.w3.org/2000/svg}g")) == len(shown.boxes)
    json.dumps(model.as_json(shown), allow_nan=False)


# As SVG


def test_the_svg_says_the_same_and_escapes_what_it_is_given():
    evil = "<script>alert(1)</script>&\"'"
    shown = picture(node("n-1", 0, 0, title=evil), node("n-2", 800, 0), runs={"n-1": "npm"}, links=[("n-1", "n-2")])
    document = svg.draw(shown)
    root = ET.fromstring(document)
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert evil in texts
    assert {"npm", "ended", "terminal n-2"} <= set(texts)
    assert "<script" not in document
    (line,) = root.iter("{http://www.w3.org/2000/svg}line")
    assert (line.get("x1"), line.get("x2")) == ("720", "800")
    assert float(root.get("width")) <= svg.MAX_SHOWN


@pytest.mark.counterpart
def test_a_real_renderer_shows_the_picture(tmp_path):
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert is not installed; tests/counterparts/apt-docs.txt lists librsvg2-bin")
    shown = picture(node("n-1", 0, 0), node("s", 800, 0, 280, 200, kind="sticky", data={"text": "é漢"}))
    (tmp_path / "map.svg").write_text(svg.draw(shown), encoding="utf-8")
    subprocess.run(["rsvg-convert", "map.svg", "-o", "map.png"], cwd=tmp_path, check=True, capture_output=True)
    picture_bytes = (tmp_path / "map.png").read_bytes()
    assert picture_bytes.startswith(b"\x89PNG")
    assert int.from_bytes(picture_bytes[16:20], "big") == 1160  # its width in pixels


# From a real host


@pytest.fixture
def canvas(host):
    """A host with two terminals in a group, a note, and a link."""
    host.ids = [host.value("terminal_open", title=title)["nodeId"] for title in ("build", "server")]
    host.value("canvas_group", nodeIds=host.ids, title="Team")
    host.value("sticky_open", text="Plan: ship it")
    assert host.run("host", "link", *host.ids, "--data", str(host.data)).returncode == 0
    host.env["TERMSPRAWL_SESSION_FILE"] = host.session_file
    return host


def test_a_real_canvas_is_drawn_with_everything_in_it(canvas, tmp_path):
    done = canvas.run("map")
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode()
    for word in ("┌ Team ╌", "┌ build ─", "┌ server ─", "bash", "Plan: ship it", "build may send work to server", "▶"):
        assert word in shown, shown
    assert "\x1b" not in shown
    boxes = json.loads(canvas.run("map", "--json").stdout)
    assert {box["label"] for box in boxes["boxes"]} == {"Team", "build", "server", "note"}
    assert boxes["links"] == [{"from": canvas.ids[0], "to": canvas.ids[1]}]
    target = tmp_path / "canvas.svg"
    assert canvas.run("map", "--svg", str(target)).returncode == 0
    assert ET.parse(target).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert canvas.run("map", "--svg", "-").stdout == target.read_bytes()


def test_a_terminal_that_has_ended_is_drawn_as_ended(canvas):
    canvas.tmux("kill-session", "-t", f"=ts-{canvas.ids[0]}")
    boxes = json.loads(canvas.run("map", "--json").stdout)["boxes"]
    assert {box["title"]: box["ended"] for box in boxes if box["kind"] == "terminal"} == {
        "build": True,
        "server": False,
    }


def test_the_status_of_the_host_says_the_same_at_a_glance(canvas):
    shown = canvas.run("host", "status", "--data", str(canvas.data)).stdout.decode()
    for node_id, title in zip(canvas.ids, ("build", "server")):
        assert f"  terminal  {node_id}  running  {title}: bash\n" in shown
    canvas.tmux("kill-session", "-t", f"=ts-{canvas.ids[0]}")
    shown = canvas.run("host", "status", "--data", str(canvas.data)).stdout.decode()
    assert f"  terminal  {canvas.ids[0]}  ended  build\n" in shown


def test_an_app_that_is_away_or_says_no_is_told(canvas, hermetic_env):
    canvas.stop()
    done = canvas.run("map")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Tool connection unavailable" in done.stderr
    assert canvas.run("map", "--svg", "/no/such/folder/x.svg").returncode == 1
    canvas.env.pop("TERMSPRAWL_SESSION_FILE")
    assert canvas.run("map").returncode == 2


def test_links_are_found_from_inside_the_project_where_the_app_keeps_it(canvas, tmp_path):
    # The app's data directory does not tell where a project lies.
    shutil.rmtree(canvas.data / "agent-tools" / "projects")
    from termsprawlctl.view import source

    ids = set(canvas.ids)
    folder = source._project_folder(canvas.session_file, str(canvas.data), str(canvas.project), ids)
    assert folder == str(canvas.project)
    assert source._project_folder(canvas.session_file, str(canvas.data), str(tmp_path), ids) is None


def test_watching_draws_again_when_something_changes_and_gives_the_screen_back(canvas):
    program = PtyProgram([canvas.ctl, "map", "--watch"], canvas.env)
    until(lambda: "server" in program.output.decode("utf-8", "ignore"), "the first picture")
    canvas.value("sticky_open", text="Qq7")
    until(lambda: b"Qq7" in program.output, "the second picture")
    program.type(b"\x03")
    status, shown = program.ended()
    program.stop()
    assert status == 130
    assert shown.startswith("\x1b[?1049h")
    assert shown.rstrip().endswith("\x1b[?1049l") or "\x1b[?1049l" in shown
    assert shown.index("\x1b[?1049l") > shown.rindex("Qq7")
    assert "\x1b[32m" in shown


def test_watching_writes_each_picture_to_a_file_or_a_pipe(canvas, tmp_path):
    target = tmp_path / "canvas.svg"
    argv = [canvas.ctl, "map", "--watch"]
    with (
        subprocess.Popen([*argv, "--svg", target], env=canvas.env, stderr=subprocess.PIPE) as to_file,
        subprocess.Popen([*argv, "--json"], env=canvas.env, stdout=subprocess.PIPE) as to_pipe,
    ):
        first = json.loads(to_pipe.stdout.readline())
        until(target.exists, "the first picture")
        canvas.value("sticky_open", text="Newnote")
        second = json.loads(to_pipe.stdout.readline())
        until(lambda: "Newnote" in target.read_text(), "the second picture")
        to_file.send_signal(signal.SIGTERM)
        to_pipe.send_signal(signal.SIGINT)
        assert (to_file.wait(20), to_pipe.wait(20)) == (130, 130)
    assert len(second["boxes"]) == len(first["boxes"]) + 1


def test_watching_waits_for_an_app_that_is_away(canvas):
    canvas.stop()
    log = Path(os.path.join(canvas.project, "log"))
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [canvas.ctl, "map", "--watch", "--json"], env=canvas.env, stdout=subprocess.PIPE, stderr=stderr
        ) as program,
    ):
        until(lambda: b"Tool connection unavailable" in log.read_bytes(), "the error")
        canvas.start()
        assert len(json.loads(program.stdout.readline())["boxes"]) == 4
        program.send_signal(signal.SIGINT)
        assert program.wait(20) == 130


def test_watching_ends_when_nobody_reads_it_any_more(canvas):
    with subprocess.Popen([canvas.ctl, "map", "--watch", "--json"], env=canvas.env, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        program.stdout.close()
        assert program.wait(20) == 0


def test_a_screen_is_drawn_as_text_and_nothing_else():
    drawn = picture(node("n-1", 0, 0, 500, 260), runs={"n-1": "bash"})
    assert "monospace" not in svg.draw(drawn)
    drawn.screens["n-1"] = ["$ echo  '<b>&'", "<b>&", ""]
    text = svg.draw(drawn)
    assert ">$ echo  '&lt;b&gt;&amp;'<" in text
    assert "terminal n-1</text>" not in text


def test_screens_come_from_the_running_terminals(host, tmp_path):
    node = host.value("terminal_open", title="build")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="printf 'a  b\\n'; printf '\\342\\200\\256\\n'")
    host.wait_for_text(node, "\na  b\n")
    picture = tmp_path / "canvas.svg"
    done = host.run("map", "--svg", str(picture), "--screens", "--session", host.session_file)
    assert done.returncode == 0, done.stderr
    text = picture.read_text(encoding="utf-8")
    assert ">a  b<" in text
    assert "\u202e" not in text
    assert host.run("map", "--screens", "--session", host.session_file).returncode == 2


def test_a_terminal_is_its_own_pane_whichever_is_active_beside_it(host, tmp_path):
    node = host.value("terminal_open", title="build")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="echo o'wn'; exec cat")
    host.wait_for_text(node, "\nown")
    split = host.tmux("split-window", "-t", f"=ts-{node}:", "echo other; exec sleep 600")
    assert split.returncode == 0, split.stderr
    picture = tmp_path / "canvas.svg"
    done = host.run("map", "--svg", str(picture), "--screens", "--session", host.session_file)
    assert done.returncode == 0, done.stderr
    text = picture.read_text(encoding="utf-8")
    assert ">own<" in text
    assert ">other<" not in text
    boxes = json.loads(host.run("map", "--json", "--session", host.session_file).stdout)["boxes"]
    (box,) = (one for one in boxes if one["id"] == node)
    assert box["runs"] == "cat"
