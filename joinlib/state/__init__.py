"""What was seen that may still find a partner? Laws: nothing is forgotten while a partner that is not late could still
come; restore(manifest) behaves as the original.

A batch appends a *segment* (an immutable Arrow file in the checkpoint folder) to each *side* (one input of one join in
one unit). Segments form *runs*: the newest, the *head*, takes inserts; sealed runs are searched, merged and dropped whole.
The *manifest* lists all that is alive and is committed by Spark with the batch. Indexes are caches that can be rebuilt.
"""
