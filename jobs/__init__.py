"""Entry points: the command line and what it starts."""
