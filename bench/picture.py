"""Plots: written to files, so that no screen is needed, and finished alike."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # must come before pyplot
from matplotlib import pyplot
from matplotlib.figure import Figure


def save(figure: Figure, path: Path, dpi: int = 110) -> None:
    """With a grid, and without the frame above and on the right."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=dpi)
    pyplot.close(figure)
