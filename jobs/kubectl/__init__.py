"""`kubectl streamjoin`: what people do with jobs of a cluster, as a plugin of kubectl.

commands   the command line
cluster    the requests, with the rights of whoever asks
words      a StreamJoin in a few lines
report     an archive for people who help
"""
