"""One MCP server over stdio for every system: lines, revisions, dispatch; providers bring the tools."""
