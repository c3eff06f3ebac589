"""Which rows of a table go with these keys? Law: what is kept changes the cost, never the answer: cache = no cache.

hashed        rows ordered by hash: every table and every answer of a database is searched this way
version       a whole table on disk, one immutable folder for each time it was loaded (full cache)
incremental   what a database has answered so far, within a budget (BS-Join, algorithm 1), over `entries` and `pieces`

Equal hash is never equal key: keys are compared after each probe. A NULL is in no key.
"""
