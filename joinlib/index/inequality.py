"""Which stored rows satisfy every comparison with a probe? (SPO-Join)

    run = build([power, cool], [Op.LT, Op.GT])              # r.power < s.power AND r.cool > s.cool; rows of s
    for probes, rows in run.probe([power_r, cool_r]): ...   # frames of bounded size, each pair once
    run.count([power_r, cool_r])                            # matches of each probe, no pair made

    build([y, y], [Op.GE, Op.LE])                           # ABS(x - y) <= c; probed with [x + c, x - c]: one range

Law: what a nested loop finds, each pair once.
"""

from joinlib.index.comparisons import Op
from joinlib.index.permuted import Run, build

__all__ = ["Op", "Run", "build"]
