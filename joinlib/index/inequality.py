"""Finds the stored rows that satisfy every comparison with a probe (SPO-Join).

    run = build([power, cool], [Op.LT, Op.GT])             # r.power < s.power AND r.cool > s.cool; rows of s
    for probes, rows in run.probe([power_r, cool_r]): ...  # frames of bounded size, each pair once
    run.count([power_r, cool_r])                           # the number of matches of each probe
    build([y, y], [Op.GE, Op.LE])                          # ABS(x - y) <= c; probe [x + c, x - c]: one range

Law: the pairs are those of a nested loop, each once.
"""

from joinlib.index.comparisons import Op
from joinlib.index.permuted import PermutedRun, build

__all__ = ["Op", "PermutedRun", "build"]
