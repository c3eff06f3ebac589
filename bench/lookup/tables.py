"""results/*.json as tables, and what was asked for beside what was measured: `bench/lookup/tables.py` writes
results/*.md.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
Found = dict[str, Any]


def main() -> None:
    found: Found = {
        name: json.loads((RESULTS / f"{name}.json").read_text())
        for name in ("lookup", "units", "flow")
        if (RESULTS / f"{name}.json").exists()
    }
    for name, parts in TABLES.items():
        if name in found:
            written = [write(found[name][part]) for part, write in parts.items() if part in found[name]]
            (RESULTS / f"{name}.md").write_text("\n\n".join("\n".join(lines) for lines in written) + "\n")
    if "flow" in found:
        (RESULTS / "flow.md").write_text("\n".join(flow(found["flow"])) + "\n")
    (RESULTS / "aims.md").write_text("\n".join(aims(found)) + "\n")
    print("\n".join(aims(found)))


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Markdown: the first column is text, all others are numbers."""
    head = list(head)
    lines = [_line(head), "|---|" + "---:|" * (len(head) - 1)]
    return lines + [_line(_said(cell) for cell in row) for row in rows]


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(c) for c in cells) + " |"


def _said(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _numbered(found: Found) -> Iterator[tuple[str, Any]]:
    """The entries whose name is a number: a size, an exponent, a budget."""
    return ((k, v) for k, v in found.items() if k.replace(".", "").isdigit())


# --- lookup.json --------------------------------------------------------------------------------------------


def database(found: Found) -> list[str]:
    """Figure 9 in one process, over a database of this machine."""
    ways = [k for k in found if k.startswith(("one ", "incremental, ", "full"))]
    head = (
        f"PostgreSQL on this machine, {found['table_rows']:,} rows, Zipf {found['zipf']}, batches of"
        f" {found['batch']:,}"
    )
    return table([head, "rows/s"], ([way, float(found[way])] for way in ways))


def spread(found: Found) -> list[str]:
    """Figures 11a and 12."""
    rows = [
        [
            zipf,
            *(f[way]["DS"] for way in ("hash", "hotspot")),
            *(max(f[w]["share"]) * found["units"] for w in ("hash", "hotspot")),
        ]
        for zipf, f in _numbered(found)
    ]
    head = [
        "Zipf",
        "DS, hash (figure 11a)",
        "DS, rule",
        "fullest unit over the mean, hash (figure 12)",
        "rule",
    ]
    return table(head, rows)


def cache(found: Found) -> list[str]:
    """Figure 11b, and the memory of a cache."""
    exponents = list(_numbered(found))
    budgets = list(exponents[0][1])
    head = [
        f"Zipf, {found['keys']:,} keys: hit rate by budget, and of it held (figure 11b)",
        *(f"{b} MiB" for b in budgets),
    ]

    def cell(f: Found, budget: str) -> str:
        return f"{f[budget]['hit rate']:.3f}, {f[budget]['bytes'] / (int(budget) << 20):.0%}"

    return table(head, ([zipf, *(cell(f, b) for b in budgets)] for zipf, f in exponents))


def lists(found: Found) -> list[str]:
    """Figure 13."""
    head = [
        "rows (figure 13)",
        "comparisons, ideal",
        "random",
        "fewer by",
        "variance over lists, ideal",
        "random",
    ]
    return table(
        head,
        (
            [
                f"2^{bits}",
                f["ideal"],
                f["random"],
                f"{1 - f['ideal'] / f['random']:.0%}",
                f["ideal variance"],
                f["random variance"],
            ]
            for bits, f in _numbered(found)
        ),
    )


def ranges(found: Found) -> list[str]:
    """Tables 6 to 8."""
    ways = ("sorted array, with its matches", "binary search", "ideal skip list", "random skip list")
    return table(
        ["rows (tables 6 to 8), M probes/s of CPU", *ways],
        ([f"2^{bits}", *(f[way] / 1e6 for way in ways)] for bits, f in _numbered(found)),
    )


def kernels(found: Found) -> list[str]:
    """Lookups that are answered from what is kept."""
    ways = [w for w in found if w.startswith(("full", "incremental"))]
    rows = [[way, found[way] / 1e6] for way in ways]
    rows.append([f"range with a key, {found['range rows']:,} rows", found["range probes with a key"] / 1e6])
    return table([f"kernels, {found['keys']:,} keys, Zipf 1.1", "M lookups/s of a core"], rows)


# --- units.json and flow.json -------------------------------------------------------------------------------


def speed(found: Found) -> list[str]:
    """Tables 1 and 3, figure 9a: Equation 5 is rows/s over those of one unit."""
    ways = {k: v for k, v in found.items() if isinstance(v, dict)}
    units = list(next(iter(ways.values())))
    head = [
        f"1 ms away, {found['table_rows']:,} rows, Zipf {found['zipf']}: rows/s",
        *(f"{u} units" for u in units),
        *(f"speed-up at {u}" for u in units[1:]),
    ]
    return table(
        head,
        ([w, *map(float, r.values()), *(r[u] / r[units[0]] for u in units[1:])] for w, r in ways.items()),
    )


def size(found: Found) -> list[str]:
    """Figure 9b."""
    sizes = sorted(found, key=int)
    head = ["10 000 rows, one unit: ms by rows of the table (figure 9b)", *(f"{int(s):,}" for s in sizes)]
    return table(head, ([way, *(1000 * found[s][way] for s in sizes)] for way in found[sizes[0]]))


def latency(found: Found) -> list[str]:
    """Tables 2 and 4."""
    head = [
        "a batch of 10 000 rows at a low rate (tables 2, 4)",
        "median, ms",
        "95th percentile, ms",
        "from the cache",
    ]
    return table(
        head,
        ([w, 1000 * f["median"], 1000 * f["p95"], f"{f['hit share']:.1%}"] for w, f in found.items()),
    )


def skewed(found: Found) -> list[str]:
    """Figures 11b to 11d."""
    head = (
        f"{found['units']} units, each as if it had a core, table 1 ms away, batches of {found['batch']:,}: hashing / rule"
        " for hot keys"
    )
    columns = {
        "M rows/s, warm (figure 11c)": lambda f: f"{f['warm'] / 1e6:.1f}",
        "M rows/s, new keys among them": lambda f: f"{f['new keys among them'] / 1e6:.2f}",
        "ms a batch, warm (figure 11d)": lambda f: f"{f['ms, warm']:.1f}",
        "ms a batch, new keys among them": lambda f: f"{f['ms, new keys among them']:.1f}",
        "MB in caches (figure 11b)": lambda f: f"{f['bytes'] / 1e6:.0f}",
        "from the cache": lambda f: f"{f['hit share']:.1%}",
    }
    rows = (
        [f"Zipf {zipf}", *(f"{told(f['hash'])} / {told(f['hotspot'])}" for told in columns.values())]
        for zipf, f in _numbered(found)
    )
    return table([head, *columns], rows)


def ranged(found: Found) -> list[str]:
    """Tables 6 to 8."""
    sizes = list(_numbered(found))
    head = [
        "time slices of roads, table 1 ms away, one unit (tables 6 to 8): rows/s; ms of a batch of 10 000 or of one row",
        *(f"2^{bits} rows" for bits, _ in sizes),
    ]

    def cell(f: Found) -> str:
        return f"{f['rows/s']:,.0f}; {f['ms']:.1f}"

    return table(head, ([way, *(cell(f[way]) for _, f in sizes)] for way in sizes[0][1]))


def flow(found: Found) -> list[str]:
    """From file to result."""
    ways = {way: f for way, f in found.items() if isinstance(f, dict)}
    batch = next(iter(ways.values()))["batch rows"]
    head = [
        f"end to end, two cores, {found['units']} units, {found['keys']:,} keys, batches of {batch:,} rows",
        "rows/s",
        "of each run, M",
        "CPU s for 1 M rows: JVM",
        "Python",
        "from the cache",
    ]
    return table(head, (_flow(way, f) for way, f in ways.items()))


def _flow(way: str, f: Found) -> list[object]:
    runs = ", ".join(f"{r / 1e6:.2f}" for r in f["rows/s of each run"])
    cpu = f["CPU seconds for 1 M rows"]
    return [way, float(f["rows/s"]), runs, cpu["JVM"], cpu["Python"], f"{f['hit share']:.1%}"]


TABLES: dict[str, dict[str, Callable[[Found], list[str]]]] = {
    "lookup": {f.__name__: f for f in (database, spread, cache, lists, ranges, kernels)},
    "units": {f.__name__: f for f in (speed, size, latency, skewed, ranged)},
}


# --- what was asked for -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aim:
    """`measured` of the part `part` of the file `file`, at least (or at most) `wanted`."""

    says: str
    file: str
    part: str
    measured: Callable[[Found], float]
    wanted: float
    most: bool = False

    def line(self, found: Found) -> list[object]:
        known = found.get(self.file, {}).get(self.part)
        if known is None:
            return [self.says, self.wanted, "not measured", ""]
        value = self.measured(known)
        held = value <= self.wanted if self.most else value >= self.wanted
        return [self.says, ("at most " if self.most else "at least ") + _said(self.wanted), value, held]


def _rows_per_second(found: Found) -> float:
    return float(found["rows/s"])


AIMS = (
    Aim("end to end, two cores, full cache of 1 M keys, rows/s", "flow", "full", _rows_per_second, 1.5e6),
    Aim("the same, incremental cache that is warm", "flow", "incremental, warm", _rows_per_second, 1.5e6),
    Aim("hit path, full, lookups/s of a core", "lookup", "kernels", lambda f: f["full, probe"], 5e6),
    Aim(
        "hit path, incremental, lookups/s of a core",
        "lookup",
        "kernels",
        lambda f: f["incremental, probe and note of use"],
        5e6,
    ),
    Aim(
        "bookkeeping of use over the probe",
        "lookup",
        "kernels",
        lambda f: f["note of use, of the probe"],
        1 / 3,
        most=True,
    ),
    Aim(
        "range join on 4 M rows with a key, probes/s of a core",
        "lookup",
        "kernels",
        lambda f: f["range probes with a key"],
        2e6,
    ),
    Aim(
        "range join on 4 M rows without a key, probes/s of a core",
        "lookup",
        "ranges",
        lambda f: f["22"]["sorted array, with its matches"],
        2e6,
    ),
    Aim(
        "warm cache over one query a row",
        "lookup",
        "database",
        lambda f: f["incremental, warm"] / f["one query a row"],
        20,
    ),
    Aim(
        "warm cache over one query a batch",
        "lookup",
        "database",
        lambda f: f["incremental, warm"] / f["one query a batch"],
        5,
    ),
    Aim(
        "DS after the switch over DS by hashing, worst Zipf",
        "lookup",
        "spread",
        lambda f: max(z["hotspot"]["DS"] / z["hash"]["DS"] for _, z in _numbered(f)),
        1 / 3,
        most=True,
    ),
    Aim(
        "memory of a cache over its budget, worst case",
        "lookup",
        "cache",
        lambda f: max(b["bytes"] / (int(mib) << 20) for _, z in _numbered(f) for mib, b in z.items()),
        1,
        most=True,
    ),
    Aim(
        "comparisons, ideal over random skip list, worst size",
        "lookup",
        "lists",
        lambda f: max(s["ideal"] / s["random"] for _, s in _numbered(f)),
        0.75,
        most=True,
    ),
    Aim(
        "variance of the ideal skip list",
        "lookup",
        "lists",
        lambda f: max(s["ideal variance"] for _, s in _numbered(f)),
        0,
        most=True,
    ),
)


def aims(found: Found) -> list[str]:
    """What was asked for, and whether the last run shows it."""
    lines = (aim.line(found) for aim in AIMS)
    told = {True: "yes", False: "**no**", "": ""}
    return table(["asked for", "", "measured", "shown"], ([*line[:3], told[line[3]]] for line in lines))


if __name__ == "__main__":
    main()
