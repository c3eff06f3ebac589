"""Samples which function each Python process of a run spends its processor time in. Loaded by every Python that starts with
this folder on its path (`bench/where.py`).

Every thread's own clock is read each few milliseconds, and what it has gained since counts for the innermost function of the
project on its stack; so waiting costs nothing. Threads that are not Python's, as those of Arrow, are one line.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY_S = 0.004
_OUT = os.environ.get("STREAMJOIN_SAMPLES", "")
_TREE = os.environ.get("STREAMJOIN_TREE", "") + "/"
_OWN = (_TREE + "joinlib/", _TREE + "jobs/")


def _place(frame: FrameType | None) -> str:
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name == "<module>":
            return "imports"
        if code.co_filename.startswith(_OWN):
            return f"{code.co_filename.removeprefix(_TREE)}:{code.co_qualname}"
        frame = frame.f_back
    return "libraries, by themselves"


def _clock(thread: int) -> float:
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except OSError:
        return 0.0


def _sample() -> None:
    own, spent = threading.get_ident(), Counter[str]()
    clocks: dict[int, float] = {}
    told = time.monotonic()
    while True:
        time.sleep(EVERY_S)
        frames = sys._current_frames()
        for thread, frame in frames.items():
            if thread != own:
                now = _clock(thread)
                spent[_place(frame)] += max(0.0, now - clocks.get(thread, 0.0 if clocks else now))
                clocks[thread] = now
        del frames
        if time.monotonic() - told > 0.25:
            told = time.monotonic()
            try:
                _tell(spent, _clock(own))
            except FileNotFoundError:  # the run is over, and nobody asks any more
                return


def _tell(spent: Counter[str], own: float) -> None:
    path = Path(_OUT) / f"{os.getpid()}.json"
    aside = path.with_suffix(".aside")
    aside.write_text(
        json.dumps(
            {"parent": os.getppid(), "all": time.process_time() - own, "spent": spent, "at": time.time()}
        )
    )
    aside.replace(path)


def _start() -> None:
    threading.Thread(target=_sample, daemon=True).start()


if _OUT:
    os.register_at_fork(after_in_child=_start)
    _start()
