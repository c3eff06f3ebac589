"""`python -m jobs.cli` is the command `streamjoin`."""

from jobs.cli.commands import main

main()
