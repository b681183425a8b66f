"""The provider that the official conformance suite wants to see, on the built file's own MCP core.

usage: mcp_conformance.py BUILT_FILE
"""

from __future__ import annotations

import base64
import os
import struct
import sys
import zlib

sys.path.insert(0, sys.argv[1])

from termsprawlctl.mcp.options import Options
from termsprawlctl.mcp.provider import CallFault, Provider
from termsprawlctl.mcp.server import serve

MISSING_CAPABILITY = -32021
HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# One red pixel, and a tenth of a second of silence.
PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + _chunk(b"IEND", b"")
)
SILENCE = bytes(800)
WAV = (
    b"RIFF" + struct.pack("<I", 36 + len(SILENCE)) + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data" + struct.pack("<I", len(SILENCE)) + SILENCE
)  # fmt: skip
TEXT = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": base64.b64encode(WAV).decode(), "mimeType": "audio/wav"}


def _resource(uri: str, kind: str, text: str) -> dict:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


# What each tool returns; [] where that is not the point.
CONTENT = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_error_handling": [],
    "test_tool_with_progress": [],
    "test_missing_capability": [],
    "test_streaming_elicitation": [],  # would ask the user, but this server never asks
    "test_logging_tool": [],  # would log to the client, but this server never does
}
# A schema that uses what JSON Schema 2020-12 has, none of which may get lost on the way.
FULL_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
FULL_SCHEMA_TOOL = "json_schema_2020_12_tool"


class Conformance(Provider):
    """A tools-only server: what needs other features is left to the baselines."""

    name = "termsprawlctl-conformance"

    def tools(self) -> list[dict]:
        plain = {"type": "object", "properties": {}, "additionalProperties": False}
        schemas = {**dict.fromkeys(CONTENT, plain), FULL_SCHEMA_TOOL: FULL_SCHEMA}
        return [
            {"name": name, "title": name, "description": name, "inputSchema": schema, "annotations": HINTS}
            for name, schema in schemas.items()
        ]

    def call(self, name: str, arguments: dict, context) -> dict:
        if name == "test_missing_capability":
            data = {"requiredCapabilities": {"sampling": {}}}
            raise CallFault(MISSING_CAPABILITY, "Missing required client capability: sampling", data)
        if name == "test_error_handling":
            text = "This tool intentionally returns an error for testing"
            return {"content": [{"type": "text", "text": text}], "isError": True}
        if name == "test_tool_with_progress":
            for value in (0, 50, 100):
                context.progress(f"{value} of 100", value, 100)
        return {"content": CONTENT.get(name) or [TEXT], "isError": False}


os._exit(serve(Conformance(), Options()))
