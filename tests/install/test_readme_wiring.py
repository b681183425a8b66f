"""The snippets for each client in docs/clients.md are what `install` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from termsprawlctl.install import tomledit
from termsprawlctl.install.clients import CLIENTS, USER, Place, configuration_file
from termsprawlctl.install.dialects import Server

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
ARGV = ["/home/you/bin/termsprawlctl", "mcp", "--start-host"]


def snippets() -> dict[str, tuple[str, str, str]]:
    """Client to (file, language, text)."""
    found = {}
    for names, language, text in re.findall(r"^(\*\*.*?)\n\n```(\w+)\n(.*?)```", DOCUMENT, re.DOTALL | re.MULTILINE):
        for client, file in re.findall(r"\*\*([\w-]+)\*\* `([^`]+)`", names):
            found[client] = (file, language, text)
    return found


def test_every_client_has_one_and_it_is_what_install_writes():
    shown = snippets()
    assert set(shown) == set(CLIENTS)
    place = Place({"HOME": "/home/you"}, "Linux", "/")
    for name, client in CLIENTS.items():
        file, language, text = shown[name]
        path = configuration_file(name, USER, place, exists=lambda _: False)
        assert file == path.replace("/home/you", "~")
        content = tomledit.read(text, ()) if language == "toml" else json.loads(text)
        expected: dict = {"termsprawl": client.dialect.make(Server(ARGV, {}))}
        for key in reversed(client.dialect.container):
            expected = {key: expected}
        assert content == expected


def test_the_sentence_names_every_client():
    (sentence,) = re.findall(r"Clients: ([^.]+)\.", DOCUMENT)
    assert sorted(sentence.split(", ")) == sorted(CLIENTS)
