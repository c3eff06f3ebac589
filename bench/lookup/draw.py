"""results/lookup.json and units.json as the paper's figures: `python bench/lookup/draw.py` writes
results/*.png.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent / "results"


def main() -> None:
    for name, drawn in (("lookup", DRAWN), ("units", UNITS)):
        if not (HERE / f"{name}.json").exists():
            continue
        results: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
        columns = len(drawn) // 2
        figure, axes = plt.subplots(2, columns, figsize=(5 * columns, 8.5), constrained_layout=True)
        for axis, (part, draw) in zip(axes.flat, drawn):
            if part in results:
                draw(axis, results[part])
            else:
                axis.set_axis_off()
        figure.savefig(HERE / f"{name}.png", dpi=110)
        plt.close(figure)


def _by_units(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {way: rates for way, rates in found.items() if isinstance(rates, dict)}


def _speed(axis: plt.Axes, found: dict[str, Any]) -> None:
    for way, rates in _by_units(found).items():
        axis.plot(list(rates), list(rates.values()), "o-", label=way)
    axis.set_yscale("log")
    axis.set(title="Rows/s, a table 1 ms away (tables 1, 3)", xlabel="units")
    axis.legend()


def _speed_up(axis: plt.Axes, found: dict[str, Any]) -> None:
    for way, rates in _by_units(found).items():
        axis.plot(list(rates), [rate / rates["1"] for rate in rates.values()], "o-", label=way)
    axis.set(title="Speed-up on two cores (figure 9a, equation 5)", xlabel="units", ylim=(0, None))
    axis.legend()


def _growing(axis: plt.Axes, found: dict[str, Any]) -> None:
    sizes = sorted(found, key=int)
    for way in found[sizes[0]]:
        axis.plot([f"{int(n):,}" for n in sizes], [1000 * found[n][way] for n in sizes], "o-", label=way)
    axis.set(title="10 000 rows (figure 9b)", xlabel="rows of the table", ylabel="ms", ylim=(0, None))
    axis.legend()


def _latency(axis: plt.Axes, found: dict[str, Any]) -> None:
    ways = list(found)
    axis.barh(ways, [1000 * found[w]["p95"] for w in ways], color="lightgray", label="95th percentile")
    axis.barh(ways, [1000 * found[w]["median"] for w in ways], height=0.4, label="median")
    axis.set(title="10 000 rows at a low rate (tables 2, 4)", xlabel="ms")
    axis.invert_yaxis()
    axis.legend()


def _database(axis: plt.Axes, found: dict[str, Any]) -> None:
    names = [
        "one query a row",
        "one query a batch",
        "incremental, new keys among them",
        "incremental, warm",
        "full",
    ]
    axis.barh(names, [found[n] for n in names])
    axis.set_xscale("log")
    axis.set(
        title=f"PostgreSQL, Zipf {found['zipf']}, {found['table_rows']:,} rows", xlabel="rows/s, one process"
    )
    axis.invert_yaxis()


def _numbered(found: dict[str, Any]) -> list[str]:
    """The entries whose name is a number."""
    return [k for k in found if k.replace(".", "").isdigit()]


def _skew(axis: plt.Axes, found: dict[str, Any]) -> None:
    _against(axis, found, "DS", 1, f"DS over {found['units']} units (figure 11a)", "DS")


def _share(axis: plt.Axes, found: dict[str, Any]) -> None:
    worst = _numbered(found)[-1]
    for at, name in enumerate(("hash", "hotspot")):
        shares = found[worst][name]["share"]
        axis.bar([u + 0.4 * at for u in range(len(shares))], shares, 0.4, label=name)
    axis.set(title=f"Share of the rows at Zipf {worst} (figure 12)", xlabel="unit")
    axis.legend()


def _cache(axis: plt.Axes, found: dict[str, Any]) -> None:
    for exponent in _numbered(found):
        budgets = found[exponent]
        axis.plot(list(budgets), [b["hit rate"] for b in budgets.values()], "o-", label=f"Zipf {exponent}")
    axis.set(title=f"Hit rate, {found['keys']:,} keys (figure 11b)", xlabel="budget, MiB", ylim=(0, 1))
    axis.legend()


def _lists(axis: plt.Axes, found: dict[str, Any]) -> None:
    for name in ("random", "ideal"):
        axis.errorbar(
            [f"2^{b}" for b in found], [f[name] for f in found.values()],
            yerr=[f[f"{name} variance"] ** 0.5 for f in found.values()], marker="o", capsize=3, label=name,
        )  # fmt: skip
    axis.set(title="Comparisons of a query (figure 13)", xlabel="rows", ylim=(0, None))
    axis.legend()


def _ranges(axis: plt.Axes, found: dict[str, Any]) -> None:
    sizes = [k for k in found if k.isdigit()]
    for name in ("sorted array, with its matches", "binary search", "ideal skip list", "random skip list"):
        axis.plot([f"2^{b}" for b in sizes], [found[b][name] / 1e6 for b in sizes], "o-", label=name)
    axis.set(title="Range probes (tables 6 to 8)", xlabel="rows", ylabel="M probes/s of CPU", ylim=(0, None))
    axis.legend()


def _against(axis: plt.Axes, found: dict[str, Any], what: str, unit: float, title: str, label: str) -> None:
    for name in ("hash", "hotspot"):
        values = [found[z][name][what] / unit for z in _numbered(found)]
        axis.plot(_numbered(found), values, "o-", label=name)
    axis.set(title=title, xlabel="Zipf exponent", ylabel=label, ylim=(0, None))
    axis.legend()


def _kept(axis: plt.Axes, found: dict[str, Any]) -> None:
    title = f"Caches of {found['units']} units (figure 11b)"
    _against(axis, found, "bytes", 1e6, title, "MB")


def _throughput(axis: plt.Axes, found: dict[str, Any]) -> None:
    _against(axis, found, "warm", 1e6, "Throughput, a core for each unit (figure 11c)", "M rows/s")


def _waiting(axis: plt.Axes, found: dict[str, Any]) -> None:
    _against(axis, found, "ms, warm", 1, f"A batch of {found['batch']:,} rows (figure 11d)", "ms")


def _ranged(axis: plt.Axes, found: dict[str, Any]) -> None:
    sizes = _numbered(found)
    for way in found[sizes[0]]:
        axis.plot([f"2^{b}" for b in sizes], [found[b][way]["rows/s"] for b in sizes], "o-", label=way)
    axis.set_yscale("log")
    axis.set(title="Range joins, a table 1 ms away (tables 6 to 8)", xlabel="rows", ylabel="rows/s")
    axis.legend()


DRAWN = [
    ("database", _database),
    ("spread", _skew),
    ("spread", _share),
    ("cache", _cache),
    ("lists", _lists),
    ("ranges", _ranges),
]

UNITS = [
    ("speed", _speed),
    ("speed", _speed_up),
    ("size", _growing),
    ("latency", _latency),
    ("skewed", _kept),
    ("skewed", _throughput),
    ("skewed", _waiting),
    ("ranged", _ranged),
]

if __name__ == "__main__":
    main()
