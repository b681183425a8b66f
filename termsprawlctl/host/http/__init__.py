"""The loopback server: connections, requests, answers."""
