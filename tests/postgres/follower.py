"""A driver's part in a process of its own, to be killed: looks at a slot again and again until it is ended.

python -m tests.postgres.follower PORT FOLDER SLOT KEYED TABLE...
"""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

from joinlib.source import opened
from tests.postgres.database import NAME, USER
from tests.postgres.replica import following


def main(port: str, folder: str, slot: str, keyed: str, *tables: str) -> None:
    server = SimpleNamespace(fields={"host": "127.0.0.1", "port": int(port), "database": NAME, "user": USER})
    key = ("id",) if keyed == "keyed" else ()
    plans = [following(server, t, slot=slot, publication=f"p_{slot}", key=key) for t in tables]
    inputs = opened(plans, Path(folder))
    while True:
        for known in inputs.values():
            known.discover()
        print("looked", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
