"""Changing one member of a JSON text: its meaning changes by that member, its other bytes not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from termsprawlctl.install import jsonc, jsonedit

ENTRY = {"command": "/opt/termsprawlctl", "args": ["mcp", "é"]}
PATH = ("mcpServers", "termsprawl")


def put(text: str, path=PATH, value=ENTRY, syntax=jsonc.JSONC) -> str:
    return jsonedit.put(text, syntax, path, value)


def remove(text: str, path=PATH, syntax=jsonc.JSONC) -> str:
    return jsonedit.remove(text, syntax, path)


def value(text: str, syntax=jsonc.JSONC):
    return jsonedit.read(text, syntax, ())


def test_a_new_entry_looks_like_its_neighbours():
    text = '{\n    "mcpServers": {\n        "a": {"command": "x"} // first\n    }\n}\n'
    assert put(text, value={"command": "c", "args": []}) == (
        '{\n    "mcpServers": {\n        "a": {"command": "x"}, // first\n'
        '        "termsprawl": {\n            "command": "c",\n            "args": []\n        }\n    }\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "k": 1\n}\n'),
        ("  \n", '{\n  "k": 1\n}\n'),
        ("{}", '{\n  "k": 1\n}'),
        ("{\n}\n", '{\n  "k": 1\n}\n'),
        ("{ // note\n}\n", '{ // note\n  "k": 1\n}\n'),
        ("{ /* a */ }", '{ /* a */\n  "k": 1\n }'),
        ('{"a": 1}', '{"a": 1, "k": 1}'),
        ('{"a": 1,}', '{"a": 1, "k": 1,}'),
        ('{"a": 1 /* one */ }', '{"a": 1, "k": 1 /* one */ }'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": 1\n}'),
        ('{\n  "a": 1,\n}', '{\n  "a": 1,\n  "k": 1,\n}'),
        ('{\n  "a": 1 // one\n  // end\n}', '{\n  "a": 1, // one\n  // end\n  "k": 1\n}'),
        ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "k": 1\r\n}\r\n'),
        ('\ufeff{\n  "a": 1\n}', '\ufeff{\n  "a": 1,\n  "k": 1\n}'),
        ('{\n  "k": 2, // two\n  "b": 3\n}', '{\n  "k": 1, // two\n  "b": 3\n}'),
    ],
)
def test_one_member_is_put_in_and_nothing_else_moves(text, expected):
    assert put(text, ("k",), 1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"k": 1}', "{}"),
        ('{\n  "k": 1\n}\n', "{}\n"),
        ('{"a": 1, "k": 1}', '{"a": 1}'),
        ('{"k": 1, "a": 1}', '{"a": 1}'),
        ('{"a": 1, "k": 1, "b": 2}', '{"a": 1, "b": 2}'),
        ('{"a": 1, "k": 1,}', '{"a": 1,}'),
        ('{\n  "a": 1, // one\n  "k": {\n    "x": [1]\n  }\n}', '{\n  "a": 1 // one\n}'),
        ('{\n  "k": 1,\n  "a": 1\n}', '{\n  "a": 1\n}'),
        ('{\n  "k": 1, // mine\n  "a": 1\n}', '{\n  // mine\n  "a": 1\n}'),
        ('{\n  // about k\n  "k": 1\n}', "{\n  // about k\n}"),
        ('{\n  "a": 1, // one\n  "k": 1 }', '{\n  "a": 1 // one\n  }'),
        ('{"a": 1, // one\n"k": 1, "b": 2}', '{"a": 1, // one\n"b": 2}'),
        ('{"x": {"k": 1}}', '{"x": {"k": 1}}'),
    ],
)
def test_one_member_is_taken_out_and_nothing_else_moves(text, expected):
    assert remove(text, ("k",)) == expected
    value(expected)


@pytest.mark.parametrize(
    ("text", "syntax", "reason"),
    [
        ('{"a": 1,}', jsonc.STRICT, "a comma after the last entry at line 1 column 8"),
        ('{"a": 1,}', jsonc.WITH_COMMENTS, "a comma after the last entry"),
        ('{\n  // x\n  "a": 1}', jsonc.STRICT, "a comment, which this client cannot read, at line 2 column 3"),
        ('{"a": 1 "b": 2}', jsonc.JSONC, "a comma or } was expected at line 1 column 9"),
        ('{"a" 1}', jsonc.JSONC, "a colon was expected"),
        ("{a: 1}", jsonc.JSONC, "a key in double quotes was expected"),
        ("{'a': 1}", jsonc.JSONC, "a key in double quotes"),
        ('{"a": 01}', jsonc.JSONC, "a comma or }"),
        ('{"a": NaN}', jsonc.JSONC, "a value was expected"),
        ('{"a": "x\ny"}', jsonc.JSONC, "a value was expected"),
        ('{"a": "\\x"}', jsonc.JSONC, "a value was expected"),
        ('{"a": 1', jsonc.JSONC, "a comma or } was expected"),
        ('{"a": [1, 2}', jsonc.JSONC, "a comma or ] was expected"),
        ('{"a":', jsonc.JSONC, "unexpected end"),
        ("{,}", jsonc.JSONC, "a key in double quotes was expected"),
        ('{"a": [,]}', jsonc.JSONC, "a value was expected"),
        ('{"a": 1,,}', jsonc.JSONC, "a key in double quotes was expected"),
        ('{} {"a": 1}', jsonc.JSONC, "unexpected text after the end"),
        ("{} /* open", jsonc.JSONC, "unexpected text after the end"),
        ("[]", jsonc.JSONC, "it is not a JSON object"),
        ('{"mcpServers": []}', jsonc.JSONC, "mcpServers is not a JSON object"),
        ('{"mcpServers": null}', jsonc.JSONC, "mcpServers is not a JSON object"),
        ('{"mcpServers": {}, "mcpServers": {}}', jsonc.JSONC, "the key mcpServers stands there twice"),
        ('{"a":' + "[" * 300 + "]" * 300 + "}", jsonc.JSONC, "nested too deep"),
    ],
)
def test_a_text_that_the_client_cannot_read_is_refused_with_the_place(text, syntax, reason):
    with pytest.raises(jsonc.NotJson, match="^" + reason.replace("}", r"\}").replace("]", r"\]")):
        put(text, syntax=syntax)


# Any document, in any of the ways in which it may be written

scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
keys = st.text(st.sampled_from('ab"\\é/{},: \n'), max_size=4)
values = st.recursive(
    scalars | st.text(st.sampled_from('x"\\/*,}]é😀\n'), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
gaps = st.sampled_from(["", "", " ", "\n  ", "\n", " // c }\n", "/* , */", "\r\n\t"])


@st.composite
def documents(draw):
    """(text, value) with blanks, comments and trailing commas in every place."""

    def written(node) -> str:
        if isinstance(node, dict):
            parts = [f"{json.dumps(key)}{draw(gaps)}:{draw(gaps)}{written(one)}" for key, one in node.items()]
            return enclosed("{", parts, "}")
        if isinstance(node, list):
            return enclosed("[", [written(one) for one in node], "]")
        return json.dumps(node, ensure_ascii=draw(st.booleans()))

    def enclosed(opening: str, parts: list[str], closing: str) -> str:
        comma = draw(st.sampled_from(["", ","])) if parts else ""
        text = ",".join(draw(gaps) + part + draw(gaps) for part in parts)
        return opening + text + comma + draw(gaps) + closing

    content = draw(st.dictionaries(keys, values, max_size=3))
    content["mcpServers"] = draw(st.dictionaries(keys.filter(lambda key: key != "termsprawl"), values, max_size=3))
    return draw(gaps) + written(content) + draw(gaps), content


@settings(max_examples=50)
@given(documents())
@example(('{"mcpServers":{"":{}}}', {"mcpServers": {"": {}}}))
def test_any_document_gets_the_entry_and_loses_it_again(document):
    text, content = document
    assert value(text) == content
    added = put(text)
    assert value(added) == {**content, "mcpServers": {**content["mcpServers"], "termsprawl": ENTRY}}
    assert put(added) == added or value(put(added)) == value(added)
    taken = remove(added)
    assert value(taken) == content
    if content["mcpServers"]:
        assert taken == text


@settings(max_examples=50)
@given(documents())
def test_any_member_can_be_taken_out_of_any_document(document):
    text, content = document
    for name in content["mcpServers"]:
        rest = {key: one for key, one in content["mcpServers"].items() if key != name}
        assert value(remove(text, ("mcpServers", name))) == {**content, "mcpServers": rest}


@settings(max_examples=50)
@given(documents(), values)
def test_any_member_can_be_given_another_value_in_place(document, new):
    text, content = document
    for name in content["mcpServers"]:
        changed = put(text, ("mcpServers", name), new)
        assert value(changed) == {**content, "mcpServers": {**content["mcpServers"], name: new}}
