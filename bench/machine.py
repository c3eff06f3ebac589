"""On what was it measured? What a reader must know to compare figures with others."""

import os
import platform
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """The machine, its load, and the libraries."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "processor": processor(),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {java()}",
        "libraries": {name: version(name) for name in ("pyspark", "pyarrow", "numpy", "numba")},
        "load_before": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """The model name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def java() -> str:
    """The version of the JVM that the peers run on, in its own words."""
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return said.stderr.splitlines()[0].replace('"', "")


def told(machine: Mapping[str, Any]) -> str:
    """The same in a sentence."""
    libraries = ", ".join(f"{name} {number}" for name, number in machine["libraries"].items())
    return (
        f"{machine['date']}: {machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB,"
        f" {machine['system']}, {libraries}; load of the machine before: {machine['load_before']}."
    )
