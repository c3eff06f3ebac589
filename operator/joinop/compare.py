"""Is an object as it was asked for? Law: what `stamped` asks for and the API server returns is covered by it.

What the server or others add is left alone; what was asked for and is gone or changed is not covered. The stamp, a
hash of all that was asked for, tells when something is no longer asked for.
"""

import hashlib
import json
from typing import Any

from joinop.names import APPLIED, Object


def stamped(wanted: Object) -> Object:
    """The object with the hash of itself."""
    text = json.dumps(wanted, sort_keys=True, ensure_ascii=False)
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    metadata = wanted["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: mark}
    return {**wanted, "metadata": {**metadata, "annotations": annotations}}


def covers(seen: Any, wanted: Any) -> bool:
    """Everything wanted is there. Absent is the same as empty, zero or false: the server leaves those out."""
    if isinstance(wanted, dict):
        found = seen if isinstance(seen, dict) else {}
        return all(covers(found.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        found_items = seen if isinstance(seen, list) else []
        return len(found_items) == len(wanted) and all(map(covers, found_items, wanted))
    return bool(seen == wanted) or (not wanted and seen is None)
