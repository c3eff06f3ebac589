"""What must the cluster hold for each StreamJoin, and how is it?

Law: the same StreamJoin gives the same objects, byte for byte.

    watch ─► queue ─► observe ─► decide ─► apply ─► status
    (kopf)            (cache)    (pure)    (server-side)

Handlers are triggers: they say which job to look at, never what to do. `decide` alone knows that, and touches nothing.
Deletion is left to the owner references, so a StreamJoin can be deleted while no operator runs.
"""
