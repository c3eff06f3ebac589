"""results/biclique.json as the paper's figures: `python bench/biclique/draw.py` writes results/biclique.png."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent / "results"


def main() -> None:
    found: dict[str, Any] = json.loads((HERE / "biclique.json").read_text())
    figure, axes = plt.subplots(2, 3, figsize=(15, 8.5), constrained_layout=True)
    for row, query in zip(axes, ("Q5", "Band")):
        models = [m for m in found["models"] if m["query"] == query]
        for axis, (field, title) in zip(
            row, (("state_mb", "MB stored (figure 10)"), ("sent_mb", "MB sent (figure 11)"))
        ):
            _lines(axis, models, field, f"{query}: {title}")
    _lines(
        axes[1][2],
        [m for m in found["models"] if m["query"] == "Band"],
        "batch_s",
        "Band: s of a batch (figure 9)",
    )
    _skew(axes[0][2], found["skew"])
    figure.savefig(HERE / "biclique.png", dpi=110)


def _lines(axis: plt.Axes, models: list[dict[str, Any]], field: str, title: str) -> None:
    for name in dict.fromkeys(m["model"] for m in models):
        own = [m for m in models if m["model"] == name]
        axis.plot([m["units"] for m in own], [m[field] for m in own], "o-", label=name)
    axis.set(
        title=title,
        xlabel="units",
        xscale="log",
        yscale="log",
        xticks=[1, 4, 16, 64],
        xticklabels=["1", "4", "16", "64"],
    )
    axis.minorticks_off()
    axis.legend()


def _skew(axis: plt.Axes, skews: list[dict[str, Any]]) -> None:
    for name in ("hash", "contrand"):
        axis.plot([s["zipf"] for s in skews], [max(s[name]) for s in skews], "o-", label=name)
    axis.set(
        title=f"rows of the fullest of {skews[0]['units']} units over the mean",
        xlabel="Zipf exponent",
        ylim=(0, None),
    )
    axis.legend()


if __name__ == "__main__":
    main()
