"""Agents behind MCP tools: the provider, its schemas, runs in the background and long outputs."""
