"""The command `streamjoin`: what a user types in a terminal."""
