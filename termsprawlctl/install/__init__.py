"""Our MCP servers in the configuration files of MCP clients: put in, found again, taken out."""
