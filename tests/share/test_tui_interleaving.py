"""No key of a line reaches another session than the one in which the line was begun.

A person who types and an agent who selects, in a thousand random orders, against a tmux of the
test's own: it has the seconds, the screens and the one-step commands of the real one, and keys
may come between any two commands. View and controller are the real ones.
"""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest
from support.waiting import until

from termsprawlctl.share import wire
from termsprawlctl.share.sharing import clients, draft
from termsprawlctl.share.sharing import view as view_module
from termsprawlctl.share.sharing.ask import Answer
from termsprawlctl.share.sharing.controller import Controller, Identity
from termsprawlctl.share.sharing.view import TmuxView

HERE = Identity("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
PROMPTS = ["$ ", "user@host:~/src$ ", "➜  ~ ", "\u276f ", "[user@host 12:30:{}]# "]
LETTERS = "rm -f > $ab'#x:?"
WIDTH = 40
NAMES = ("one", "two", "three")


class Machine:
    """A tmux with three sessions of one shell each, a client in one of them, and a person before it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_s = 1_700_000_000.0 + self.random.random()
        self.session = 0
        self.activity = int(self.now_s) - 10
        self.session_activity = [self.activity] * len(NAMES)
        self.prompts = [self.new_prompt() for _ in NAMES]
        self.typed = [""] * len(NAMES)
        self.begun_in: int | None = None  # where the line was begun that is not sent
        self.strays: list[str] = []
        self.left = 0  # keys of the line that the person is about to type
        self.next_key_s = self.now_s + 5.0

    def new_prompt(self) -> str:
        return self.random.choice(PROMPTS).format(self.random.randrange(10, 60))

    # The person.

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and the keys come that are due in it."""
        end_s = self.now_s + seconds
        while self.next_key_s <= end_s:
            self.now_s = max(self.now_s, self.next_key_s)
            self.press()
            self.next_key_s = self.now_s + self.random.choice([0.01, 0.1, 0.4, 1.0, 2.6, 4.0, 9.0])
        self.now_s = end_s

    def press(self) -> None:
        end = not self.left and self.begun_in is not None
        if self.begun_in is not None and self.begun_in != self.session:
            self.strays.append(f"{NAMES[self.begun_in]} to {NAMES[self.session]}")
        self.activity = self.session_activity[self.session] = int(self.now_s)
        if end:
            self.typed[self.session] = ""
            self.begun_in = None
            if self.random.random() < 0.5:  # Enter, after which the prompt may be another; or Ctrl-U
                self.prompts[self.session] = self.new_prompt()
            return
        if self.begun_in is None:
            self.begun_in = self.session
            self.left = self.random.randrange(1, 60)
        self.left -= 1
        self.typed[self.session] += self.random.choice(LETTERS)

    # tmux.

    async def ask(self, *commands: tuple[str, ...]) -> Answer:
        self.pass_time(self.random.choice([0.0, 0.001, 0.03]))
        lines: list[str] = []
        for command in commands:
            done = self.run(command)
            if done is None:
                return Answer(agreed=False, lines=lines, words="not enough arguments")
            lines += done
        await asyncio.sleep(0)
        self.pass_time(self.random.choice([0.0, 0.001, 0.03]))
        return Answer(agreed=True, lines=lines, words="")

    def run(self, command: tuple[str, ...]) -> list[str] | None:
        if command[0] == "list-clients":
            return [self.row()]
        if command[0] == "display-message":
            return [command[-1].replace("%s", str(int(self.now_s)))]
        if command[0] == "capture-pane":
            return self.screen(int(command[-1][1:]))
        if command[0] == "if-shell":
            shown = f"@{self.session} %{self.session}"
            expected = command[4].partition(",")[2][:-1]
            session = int(command[3][1:-1])
            if f"{self.session_activity[session]} {shown}" != expected:
                return [view_module._FENCED]
            self.session = int(command[5].rpartition("$")[2].strip("'"))
            self.session_activity[self.session] = int(self.now_s)
            return []
        return None

    def screen(self, session: int) -> list[str]:
        text = self.prompts[session] + self.typed[session]
        return ["output", *(text[at : at + WIDTH].rstrip() for at in range(0, len(text) + 1, WIDTH))]

    def row(self) -> str:
        length = len(self.prompts[self.session] + self.typed[self.session])
        members = {
            **dict.fromkeys(clients._CLIENT_FIELDS, ""),
            "pid": "900",
            "start_time": "1000",
            "client_pid": "50",
            "client_created": "1001",
            "client_activity": str(self.activity),
            "client_flags": "attached",
            "session_id": f"${self.session}",
            "window_id": f"@{self.session}",
            "pane_id": f"%{self.session}",
            "session_activity": str(self.session_activity[self.session]),
            "session_attached": "1",
            "cursor_x": str(length % WIDTH),
            "cursor_y": str(1 + length // WIDTH),
            "pane_width": str(WIDTH),
            "version": "3.3a",
            "pane_current_command": "bash",
            "client_name": "/dev/pts/1",
        }
        return "\t".join(members.values())

    def sessions(self) -> list[str]:
        return [f"900\t1000\t${number}\t{name}" for number, name in enumerate(NAMES)]


async def play(machine: Machine, monkeypatch, steps: int) -> int:
    """An agent that selects at random moments; how often it did."""
    ended: list[str] = []
    view = TmuxView(
        None,
        clients.parse_client(machine.row()),
        ended.append,
        wall_clock=lambda: machine.now_s,
        clock=lambda: machine.now_s - 1_699_999_000.0,
    )
    controller = Controller(view, HERE, clock=lambda: machine.now_s - 1_699_999_000.0)
    view._controller = controller
    view._ask = machine.ask

    async def ask_for_sessions(*_arguments, **_options) -> Answer:
        await machine.ask(("list-clients",))
        return Answer(agreed=True, lines=machine.sessions(), words="")

    async def sleep(seconds: float, sleep=asyncio.sleep) -> None:
        machine.pass_time(seconds)
        await sleep(0)

    monkeypatch.setattr(view_module, "ask", ask_for_sessions)
    monkeypatch.setattr(view_module, "_sleep", sleep)
    applied = 0
    for _ in range(steps):
        machine.pass_time(machine.random.choice([0.05, 0.5, 1.6, 3.0]))
        await view.look()
        answers: list[dict] = []
        seen = controller.context()["context"]
        machine.pass_time(machine.random.choice([0.0, 0.0, 0.2]))
        await view.look()
        target = clients.public_id(clients.Server("900", "1000"), f"${machine.random.randrange(len(NAMES))}")
        request = wire.SelectSession(
            request_id=str(uuid.UUID(int=machine.random.getrandbits(128), version=4)),
            instance_id=HERE.instance_id,
            generation=HERE.generation,
            expected_revision=seen["revision"],
            session_id=target,
        )
        controller.select(request, answers.append)
        while not answers:
            await asyncio.sleep(0)
        applied += answers[0]["status"] == "applied"
    assert ended == []
    view.close()
    return applied


@pytest.mark.parametrize("chunk", range(10))
def test_in_a_thousand_orders_no_key_reaches_another_session_than_its_line_was_begun_in(chunk, monkeypatch):
    applied = 0
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        machine = Machine(seed)
        applied += asyncio.run(play(machine, monkeypatch, 12))
        assert machine.strays == [], seed
    assert applied > 100, "an agent that never gets through proves nothing"


@pytest.mark.parametrize("without", ["the line", "the fence"])
def test_without_either_of_the_two_guards_keys_do_go_astray(monkeypatch, without):
    """That the test above can fail."""
    if without == "the line":
        monkeypatch.setattr(draft, "blocks", lambda *_: False)
    else:
        run = Machine.run

        def unfenced(self, command):
            if command[0] == "if-shell":
                now = f",{self.session_activity[self.session]} @{self.session} %{self.session}}}"
                command = (*command[:4], now, *command[5:])
            return run(self, command)

        monkeypatch.setattr(Machine, "run", unfenced)

    def strays(seed: int) -> list[str]:
        machine = Machine(seed)
        asyncio.run(play(machine, monkeypatch, 12))
        return machine.strays

    assert any(strays(seed) for seed in range(300))


def test_half_a_line_in_a_real_tmux_keeps_the_agent_out_until_it_is_sent(tmux, client, ctl, share, ids):
    two = ids()["two"]
    share.quiet_context()
    client.type(b"echo half-a")
    until(lambda: tmux.screen("=one:").rstrip().endswith("half-a"))
    pressed_s = int(tmux.clients("#{client_activity}")[0])
    until(lambda: int(tmux.run("display-message", "-p", "%s")) > pressed_s + 3, "the pause after it is over")
    assert share.select(two) == {"status": "rejected", "code": "user_active"}
    client.type(b"-line\r")
    until(lambda: "\nhalf-a-line" in tmux.screen("=one:"))
    share.quiet_context()
    assert share.select(two)["status"] == "applied"
    assert tmux.screen("=two:").strip() == "$"
