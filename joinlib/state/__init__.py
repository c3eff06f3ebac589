"""Which rows may still find a partner?

Laws: no row is dropped while a partner that is not late could still arrive; restore(manifest) behaves as the
original.

A batch appends a *segment* (an immutable Arrow file in the checkpoint folder) to each *side* (one input of
one join in one unit). Segments form *runs*: the newest, the *head*, takes inserts; sealed runs are
searched, merged and dropped whole. The *manifest* lists everything that is live and is committed
with the batch. Indexes are caches that can be rebuilt.
"""
