#!/usr/bin/env python3
"""How fast are the rows of a run found by their hashes?

Sealed rows, behind filters, against hash chains; one core.

    .venv/bin/python bench/memory_state/probe.py        # 10 M rows, half a minute; writes results/sealed-probe.{json,md,png}

Probes come in batches of 500 000, in the order of their hashes, as blocks do. Rows lie in a file, mapped;
nothing is gathered.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from joinlib.arrays import U64
from joinlib.index.ascending import guide
from joinlib.index.bloom import of_words
from joinlib.index.chains import Chains
from joinlib.index.sealed import HashProbes, Sealed

RESULTS = Path(__file__).parents[1] / "results"
HITS = (0.0, 0.1, 1.0)
PROBES, BLOCKS = 500_000, 20
Probe = Callable[[U64], int]


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rows", type=int, default=10_000_000)
    asked.add_argument("--repetitions", type=int, default=5)
    asked.add_argument("--out", type=Path, default=RESULTS / "sealed-probe")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = measured(Path(folder), given.rows, given.repetitions)
    given.out.with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n")
    given.out.with_suffix(".md").write_text(table(made))
    draw(made, given.out.with_suffix(".png"))
    print(table(made))


def measured(folder: Path, rows: int, repetitions: int) -> dict[str, object]:
    """Million probes a second, by way and share of hits."""
    random = np.random.default_rng(1)
    arrived = random.integers(0, 2**64, rows, np.uint64)
    file = folder / "hashes"
    np.sort(arrived).tofile(file)
    chains, seconds = _chains(folder, arrived)
    sealed, guided, bare, guide_bytes = _sealed(file)
    ways: dict[str, Probe] = {
        "sealed: filter and fences": lambda wanted: _count(sealed, wanted),
        "sealed: fences only": lambda wanted: _count(bare, wanted),
        "hash chains": lambda wanted: sum(len(p) for p, _ in chains.probe(wanted, 2 * PROBES)),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for hits in HITS:
        wanted = [_wanted(random, arrived, hits) for _ in range(repetitions)]
        for name, probe in ways.items():
            probe(wanted[0])
            found[name].append(_rate(probe, wanted))
    return {
        "rows": rows,
        "hits": HITS,
        "millions_a_second": found,
        "bytes_a_row": {"hash chains": chains.allocated_bytes / rows, "sealed": guide_bytes / rows},
        "seconds_to_make": {"hash chains": seconds, "sealed": guided},
    }


def _chains(folder: Path, arrived: U64) -> tuple[Chains, float]:
    chains = Chains(folder / "x.index", 0, len(arrived))
    blocks = [np.sort(block) for block in np.array_split(arrived, BLOCKS)]
    began = time.thread_time()
    chains.begin()
    for block in blocks:
        chains.insert(block)
    chains.finish(1, 0)
    return chains, time.thread_time() - began


def _sealed(file: Path) -> tuple[Sealed, float, Sealed, int]:
    """The rows as they are found, how long their guide took; the same without a filter; bytes of the guide."""
    hashes = np.memmap(file, np.uint64, "r")
    plain = np.frombuffer(hashes, np.uint64)
    guide(plain[:100])
    began = time.thread_time()
    made = guide(plain)
    seconds = time.thread_time() - began
    full = of_words(np.full(8, 2**64 - 1, np.uint64), made.first, made.last)
    ways = Sealed(file, False), Sealed(file, False)
    ways[0].hold([(plain, made)])
    ways[1].hold([(plain, made._replace(filter=full))])
    return ways[0], seconds, ways[1], made.nbytes


def _count(sealed: Sealed, wanted: U64) -> int:
    return sum(len(p) for p, _ in sealed.probe(HashProbes(wanted), 2 * PROBES))


def _wanted(random: np.random.Generator, arrived: U64, hits: float) -> U64:
    known = random.choice(arrived, int(PROBES * hits))
    return np.sort(np.concatenate([known, random.integers(0, 2**64, PROBES - len(known), np.uint64)]))


def _rate(probe: Probe, wanted: list[U64]) -> float:
    """Millions a second of this thread's own time, so that a busy machine matters little: the best, as noise
    only adds.
    """
    rates = []
    for some in wanted:
        began = time.thread_time()
        probe(some)
        rates.append(len(some) / (time.thread_time() - began) / 1e6)
    return round(max(rates), 1)


def table(made: dict[str, object]) -> str:
    """Markdown."""
    rates = made["millions_a_second"]
    assert isinstance(rates, dict)
    lines = [
        (
            f"Million probes a second, one core, {made['rows']:,} rows, {PROBES:,} probes a batch in the order"
            " of their hashes."
        ),
        "",
        "| | " + " | ".join(f"{h:.0%} found" for h in HITS) + " |",
        "|---|" + "---|" * len(HITS),
        *(f"| {name} | " + " | ".join(map(str, row)) + " |" for name, row in rates.items()),
        "",
    ]
    for what, unit in (("bytes_a_row", "bytes a row"), ("seconds_to_make", "seconds to make")):
        figures = made[what]
        assert isinstance(figures, dict)
        lines.append(f"{unit}: " + ", ".join(f"{name} {value:.2f}" for name, value in figures.items()) + "  ")
    return "\n".join(lines) + "\n"


def draw(made: dict[str, object], to: Path) -> None:
    """Bars, one group a share of hits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rates = made["millions_a_second"]
    assert isinstance(rates, dict)
    figure, axes = plt.subplots(figsize=(8, 4))
    width = 0.8 / len(rates)
    for at, (name, row) in enumerate(rates.items()):
        axes.bar(np.arange(len(HITS)) + at * width, row, width, label=name)
    axes.axhline(5, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xticks(np.arange(len(HITS)) + 0.4 - width / 2, [f"{h:.0%} found" for h in HITS])
    axes.set_ylabel("million probes a second")
    axes.set_title(f"Probing {made['rows'] / 1e6:g} M rows of a run, one core")  # type: ignore[operator]
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(to, dpi=120)


if __name__ == "__main__":
    main()
