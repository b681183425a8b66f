"""The command line's floor: one small module per command.

A module has `configure(parser)`, which declares arguments and help, and
`run(args)`, which returns the exit status. Bodies live with their systems.
"""
