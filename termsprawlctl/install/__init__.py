"""Our MCP servers in the configuration files of MCP clients: add, find and remove entries."""
