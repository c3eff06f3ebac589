"""Results in a table of PostgreSQL: each batch is there as a whole, once.

    task      rows ─► spool ─► COPY ─► staging table, as a part with a number of its own
    driver    all tasks done ─► BEGIN; is the batch there already?; parts ─► table; number of the batch; COMMIT

    streamjoin_batches              for each job and table: the run that writes, and the last batch that is there
    streamjoin_staged_JOB_RUN       unlogged; parts of the batch that runs, those of dead attempts too

Laws: what is in the table is what all batches up to that number have made, whatever was killed when. Only the
run that came last writes. A checkpoint that knows less than the database is refused.

    types        which types of a table hold which of the result
    target       is the table there, and does it fit?
    statements   the SQL, with all names quoted
    sink         what a task does
    outlet       what the driver does
"""
