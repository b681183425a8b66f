"""One run of an agent CLI, from its start to its result: the process, its output, its end."""
