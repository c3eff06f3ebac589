"""Which rows of a table go with these keys? Law: caching changes the cost, never the answer.

    hashed        rows ordered by hash: every table and every answer of a database is searched this way
    version       a whole table on disk, one immutable folder for each time it was loaded (full cache); if it
                  exceeded its budget, in parts that `spill` has set aside
    incremental   what a database has answered so far, within a budget (BS-Join, algorithm 1), over `entries`
                  and `pieces`

Equal hashes do not imply equal keys: keys are compared after each probe. A NULL matches no key.
"""
