"""Many terminals, many clients, much output and much nonsense on one host."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import threading
from pathlib import Path

import pytest
from support.waiting import until

TERMINALS, AGENTS = 64, 8
CLIENTS, CALLS = 16, 10_000
TYPED = 25  # how many of a client's calls type a line, in an order that has to stay
# Half a gigabyte takes half a minute; it is the same path all the way.
FLOOD_BYTES = 500_000_000 if os.environ.get("FUZZ_PROFILE") == "long" else 200_000_000
MALFORMED = 1_000
# Less than one more thread's stack and one more request body for every twentieth request.
FLAT_KIB = 16_384

RAW_READER = """\
import os, sys, tty
tty.setraw(0)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, b"READY\\r\\n")
while True:
    os.write(out, os.read(0, 65536))
"""


class Client:
    """Calls over plain HTTP with one token, without a process for each call."""

    def __init__(self, host, session_file: str) -> None:
        self.port = host.port()
        self.token = json.loads(Path(session_file).read_text())["token"]

    def call(self, operation: str, **args) -> dict:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            body = json.dumps({"operation": operation, "args": args})
            connection.request("POST", "/call", body, {"authorization": f"Bearer {self.token}"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def session_file(host, node: str) -> str:
    return str(host.data / "agent-tools" / "sessions" / f"{node}.json")


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no such line")


def run_all(*targets) -> None:
    """Run functions at once; the first failure of any is this one's."""
    faults: list[BaseException] = []

    def guarded(target) -> None:
        try:
            target()
        except BaseException as fault:  # noqa: BLE001 - raised again below
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


@pytest.mark.timeout(600)
def test_sixty_four_terminals_and_eight_agents_live_on_one_host(host, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\n[ "$1" = --help ] && exit 0\necho "agent $TERMSPRAWL_NODE_ID"; exec cat\n')
    agent.chmod(0o755)
    preferences = host.data / "agent-tools" / "preferences.json"
    preferences.write_text(json.dumps({"customAgent": {"executable": str(agent)}}))
    person = Client(host, host.session_file)
    nodes = [person.call("terminal_open")["value"]["nodeId"] for _ in range(TERMINALS)]
    agents = [person.call("agent_launch", agent="custom")["value"]["nodeId"] for _ in range(AGENTS)]
    assert len({*nodes, *agents}) == TERMINALS + AGENTS
    for node in nodes:
        assert person.call("terminal_submit", nodeId=node, command=f"echo I-am-{node}-$((1+1))")["ok"]
    for node in nodes:
        host.wait_for_text(node, f"I-am-{node}-2")
    for node in agents:
        host.wait_for_text(node, f"agent {node}")
        assert Client(host, session_file(host, node)).call("session_info")["value"]["nodeId"] == node
    assert len(person.call("canvas_list")["value"]) == TERMINALS + AGENTS
    running = [one for one in person.call("agent_status")["value"] if one["running"]]
    assert len(running) == TERMINALS + AGENTS


@pytest.mark.timeout(600)
def test_ten_thousand_calls_of_sixteen_clients_are_all_answered_once_and_in_order(host, tmp_path):
    script, arrived = tmp_path / "reader.py", tmp_path / "arrived"
    script.write_text(RAW_READER)
    person = Client(host, host.session_file)
    target = person.call("terminal_open")["value"]["nodeId"]
    person.call("terminal_submit", nodeId=target, command=f"python3 {script} {arrived}")
    host.wait_for_text(target, "READY")
    nodes = [person.call("terminal_open")["value"]["nodeId"] for _ in range(CLIENTS)]
    answered: list[str] = []

    def work(node: str, number: int) -> None:
        client = Client(host, session_file(host, node))
        every = CALLS // CLIENTS // TYPED
        for count in range(CALLS // CLIENTS):
            if count % every == 0:
                assert client.call("terminal_input", nodeId=target, text=f"<{number}:{count}>")["ok"]
            else:
                # Each has to get its own answer, not another client's.
                assert client.call("session_info")["value"]["nodeId"] == node
            answered.append(node)

    run_all(*(lambda node=node, number=number: work(node, number) for number, node in enumerate(nodes)))
    assert len(answered) == CALLS
    until(lambda: arrived.read_bytes().count(b">") >= CLIENTS * TYPED, "the last of what was typed")
    typed = [tuple(map(int, one.split(":"))) for one in arrived.read_text()[1:-1].split("><")]
    assert len(typed) == len(set(typed)) == CLIENTS * TYPED
    for number in range(CLIENTS):
        mine = [count for client, count in typed if client == number]
        assert mine == sorted(mine)


@pytest.mark.timeout(600)
def test_hundreds_of_megabytes_in_one_terminal_disturbs_no_other(host):
    person = Client(host, host.session_file)
    flooded, other = (person.call("terminal_open")["value"]["nodeId"] for _ in range(2))
    pid = host.pid()
    before_kib = resident_kib(pid)
    command = f"yes 0123456789abcdef | head -c {FLOOD_BYTES}; echo; echo flood-$((1+1))-over"
    assert person.call("terminal_submit", nodeId=flooded, command=command)["ok"]
    rounds = 0
    while "flood-2-over" not in person.call("terminal_read", nodeId=flooded, maxChars=2000)["value"]["output"]:
        assert person.call("terminal_submit", nodeId=other, command=f"echo round-{rounds}-$((1+1))")["ok"]
        host.wait_for_text(other, f"round-{rounds}-2", timeout_s=60)
        rounds += 1
    assert rounds > 0
    assert resident_kib(pid) - before_kib < 4 * FLAT_KIB


def malformed(random_: random.Random, token: str | None) -> bytes:
    """One request that is wrong in some way, with a good token or none."""
    body = json.dumps({"operation": random_.choice(["session_info", "terminal_read", "x"]), "args": {}}).encode()
    damage = random_.randrange(6)
    if damage == 0:
        body = bytes(random_.randrange(256) for _ in range(random_.randrange(200)))
    elif damage == 1:
        body = b"[" * random_.randrange(1, 5000)
    elif damage == 2:
        body = body[: random_.randrange(len(body))]
    elif damage == 3:
        body = json.dumps(
            {"operation": random_.choice([None, 1, [], {}]), "args": random_.choice([None, 1, [], "x"])}
        ).encode()
    head = (
        f"{random_.choice(['POST', 'GET', 'PO ST', ''])} {random_.choice(['/call', '/', '/call/../x', '*'])} HTTP/1.1"
    )
    length = len(body) if damage != 4 else random_.choice([-1, 10**9, "x", len(body) + 5, 0])
    lines = [head, f"content-length: {length}"]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    if random_.random() < 0.2:
        lines.append(
            random_.choice(
                ["origin: null", "transfer-encoding: chunked", "x" * 70_000, ": no name", "expect: 100-continue"]
            )
        )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def exchange(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it answered before it had read everything
        received = b""
        try:
            while chunk := sock.recv(65536):
                received += chunk
        except ConnectionResetError:
            pass
    return received


@pytest.mark.timeout(600)
def test_a_thousand_malformed_requests_crash_nothing_leak_no_token_and_keep_memory_flat(host):
    random_ = random.Random(7)
    token, port, pid = host.token(), host.port(), host.pid()
    for number in range(100):  # what any request costs once is spent here
        exchange(port, malformed(random_, token if number % 2 else None))
    before_kib = resident_kib(pid)
    for number in range(MALFORMED):
        answer = exchange(port, malformed(random_, token if number % 2 else None))
        assert token.encode() not in answer
        assert not answer or answer.startswith(b"HTTP/1.1 "), answer[:100]
    assert resident_kib(pid) - before_kib < FLAT_KIB
    assert host.pid() == pid
    assert host.value("session_info")["nodeId"].startswith("cli-")
    log = (host.data / "host.log").read_text()
    assert token not in log
    assert "internal error" not in log
