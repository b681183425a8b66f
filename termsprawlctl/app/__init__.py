"""Reaching the app: its two files, one call over loopback, and the operations as MCP tools."""
