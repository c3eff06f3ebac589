"""Customers, their orders and the lines of these, as a path join written by hand.

c by c.k ─► o by o.c │ l by l.o        o by o.c ─► c by c.k │ l by l.o        l by l.o ─► o by o.k │ c by c.k
"""

import pyarrow as pa

from joinlib.expr import ref
from joinlib.expr.bound import Bound
from joinlib.model.inputs import HASH, InputPlan, StoredColumn
from joinlib.model.joins import Join, Leaf
from joinlib.model.operator import Operator
from joinlib.model.paths import Hop, Leg
from joinlib.model.side import SideConfig
from joinlib.model.stage import HopStage, OutputColumn, PathStage, Pipeline
from joinlib.path.graph import Arrangement, JoinGraph, Path, Probe

INT, TIME = pa.int64(), pa.timestamp("us", "UTC")
KINDS = {"c.k": INT, "c.name": pa.string(), "o.k": INT, "o.c": INT, "o.t": TIME, "l.o": INT, "l.t": TIME}
COLUMNS = {a: tuple(n for n in KINDS if n.startswith(a)) for a in "col"}
BOUND = Bound("o.t", "l.t", 0, None)  # decided where l meets o
BY = (("c", "c.k"), ("o", "o.c"), ("o", "o.k"), ("l", "l.o"))
ARRANGEMENTS = (Arrangement(0, (0,)), Arrangement(1, (0,)), Arrangement(1, (1,)), Arrangement(2, (1,)))


def schema(*names: str, hashed: bool = False) -> pa.Schema:
    """The columns of these names, behind a hash or not."""
    first = [pa.field(HASH, pa.uint64())] if hashed else []
    return pa.schema([*first, *(pa.field(n, KINDS[n]) for n in names)])


def plan(number: int, alias: str, key: str, names: tuple[str, ...], **more: object) -> InputPlan:
    """An input that has these columns and comes by this key."""
    columns = tuple(StoredColumn(n, ref(n, KINDS[n])) for n in names)
    given = {"read": names, "source": alias, "time": None, **more}
    return InputPlan(  # type: ignore[arg-type]
        number=number,
        alias=alias,
        filter=None,
        columns=columns,
        keys=(key,),
        delay_us=0,
        idle_us=None,
        keep_null_keys=False,
        **given,
    )


def side(number: int) -> SideConfig:
    """The side of an arrangement."""
    alias, key = BY[number]
    return SideConfig(
        number, schema(*COLUMNS[alias], hashed=True), (key,), None, None, marked=False, versioned=True
    )


def hop(names: tuple[str, ...], key: str, asked: int, *, after: bool, bounds: tuple[Bound, ...] = ()) -> Hop:
    """A probe of tuples that have these columns."""
    own = SideConfig(0, schema(*names, hashed=True), (key,), None, None, marked=False)
    both = schema(*names, *COLUMNS[BY[asked][0]], hashed=True)
    operator = Operator("inner", (Leaf(0), Leaf(1)), (own, side(asked)), True, bounds, None, None, both)
    return Hop(operator, asked, after, asker="col".index(key[0]))


def three(units: int = 4) -> Pipeline:
    """SELECT c.name, o.k, l.t FROM c JOIN o ON c.k = o.c JOIN l ON o.k = l.o AND l.t >= o.t."""
    c, o, l = COLUMNS["c"], COLUMNS["o"], COLUMNS["l"]  # noqa: E741
    inputs = tuple(
        plan(n, a, key, COLUMNS[a], again=1 if n == 2 else None, read=tuple(x[2:] for x in COLUMNS[a]))
        for n, (a, key) in enumerate(BY)
    )
    found = ("c.name", "o.k", "o.t"), ("c.name", "o.k", "o.t"), ("l.t", "o.c", "o.k")
    paths = (
        Path(0, (Probe(0, 1), Probe(1, 3))),
        Path(1, (Probe(1, 0), Probe(1, 3))),
        Path(2, (Probe(2, 2), Probe(1, 0))),
    )
    first = (
        Leg(0, (hop(c, "c.k", 1, after=False),), schema(*found[0])),
        Leg(1, (hop(o, "o.c", 0, after=True),), schema(*found[1])),
        Leg(2, (hop(l, "l.o", 2, after=True, bounds=(BOUND,)),), schema(*found[2])),
    )
    whole = schema("c.name", "l.t", "o.k")
    last = (
        Leg(0, (hop(found[0], "o.k", 3, after=False, bounds=(BOUND,)),), whole),
        Leg(1, (hop(found[1], "o.k", 3, after=False, bounds=(BOUND,)),), whole),
        Leg(2, (hop(found[2], "o.c", 0, after=True),), whole),
    )
    leaves = (Leaf(0), Leaf(1), Leaf(2))
    tree = Join("inner", leaves, (("c.k",), ("o.c", "o.k"), ("l.o",)), (BOUND,), None, None)
    stage = PathStage(
        inputs=inputs,
        tree=tree,
        graph=JoinGraph(3, (frozenset([0, 1]), frozenset([1, 2]))),
        arrangements=ARRANGEMENTS,
        homes=(0, 1, 3),
        sides=tuple(map(side, range(4))),
        paths=paths,
        legs=first,
        orders=(0, 1, 2),
        timed=False,
        units=units,
    )
    tuples = tuple(
        plan(n, "$0", key, names, source="$stage0", upstream=0)
        for n, (key, names) in enumerate(zip(("o.k", "o.k", "o.c"), found, strict=True))
    )
    select = tuple(OutputColumn(n, ref(n, KINDS[n])) for n in ("c.name", "o.k", "l.t"))
    return Pipeline((stage, HopStage(tuples, last, units, last=True, select=select)))
