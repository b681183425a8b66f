"""Beyond one machine: a host over there, through the user's own OpenSSH.

`places` has what is kept here of each destination, `ssh` the one connection, `carrier` and
`guest` what runs over there (`guest` alone and without the rest of the package), `reaching`
the steps from a destination to a session file that works here, `keeper` the process that
makes the connection again.
"""
