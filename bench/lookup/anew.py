"""All figures of streams that meet tables, measured anew on a quiet machine: `python bench/lookup/anew.py`,
under 20 minutes.

    run ─► units ─► flow ─► tables, plots, and what was asked for beside what was measured

Each is a process of its own, one after the other; what one has measured stays if a later one fails.
`--quick`: a minute or two, small, without tables.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PARTS = (["run.py"], ["units.py", "--anew"], ["flow.py"])
DRAWN = (["draw.py"], ["tables.py"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    quick = parser.parse_args().quick
    began, failed = time.monotonic(), []
    for script, *options in [*PARTS, *([] if quick else DRAWN)]:
        code = subprocess.call(
            [sys.executable, str(HERE / script), *options, *(["--quick"] if quick else [])]
        )
        failed += [script] if code else []
        print(f"--- {script}: {(time.monotonic() - began) / 60:.1f} minutes since the beginning", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


if __name__ == "__main__":
    main()
