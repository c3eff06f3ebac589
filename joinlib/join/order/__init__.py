"""In which order does a row probe the other inputs of an n-way inner join? (dpPick)

    batch ─► counts of each probe ─► end of a cycle: γ, μ, κ smoothed, α measured ─► cost model
          ─► search ─► orders

The order changes what a batch costs, never its result.
"""
