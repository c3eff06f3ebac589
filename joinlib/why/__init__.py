"""Why is a row in the result, and why is another not there? Answered by reading alone.

    condition ─► rows of inputs that meet it ─► filter, key, lateness ─► partners ─► … ─► a verdict for each row
                 logs of inputs, files, topics   manifests                read again by key

    progress    which batch read a slice, and how far time was before it
    scan        reads inputs again, with the place of every row
    sift        what an input does with its rows before they join
    incoming    which rows come to a join: read, not deleted, in time
    node        a join, however it is run, as one form
    match       joins a few rows, and notes where each is lost
    looked      looks rows up in tables
    trace       follows rows through the stages
    answer      the two questions
    verdict     what became of a row
    kept        what a state holds, as tables: `stored` says what a table is, `kept_sides` are rows of joins,
                `kept_groups` groups, `kept_over` rows of window functions and of as-of joins

Law: a verdict is what the engine does by the same plan, logs and manifests. Nothing is written and no lock is
taken, so a job may run meanwhile. Cost: one pass over an input for each time that it is asked, and the rows
that meet the condition or have their keys in memory.
"""
