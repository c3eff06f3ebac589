"""`kubectl streamjoin`: what people do with jobs of a cluster, as a plugin of kubectl.

commands   the command line
cluster    the requests, with the rights of whoever asks
ask        a question, answered beside the driver
remote     a command in a container: what it prints, and its exit code
words      a StreamJoin in a few lines
report     an archive for people who help
"""
