"""Detect drift between an object and what is desired of it.

Law: what `stamped` describes and the API server returns is covered.

Fields that the server or others add are ignored; a desired field that is missing or changed is drift. The
stamp, a hash of the whole desired object, shows when a field is no longer desired.
"""

import hashlib
import json
from typing import Any

from joinop.names import APPLIED, Object


def stamped(desired: Object) -> Object:
    """Return the object with a hash of itself as an annotation."""
    text = json.dumps(desired, sort_keys=True, ensure_ascii=False)
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    metadata = desired["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: mark}
    return {**desired, "metadata": {**metadata, "annotations": annotations}}


def covers(observed: Any, desired: Any) -> bool:
    """Is everything desired present? Absent equals empty, zero and false: the server leaves those out."""
    if isinstance(desired, dict):
        found = observed if isinstance(observed, dict) else {}
        return all(covers(found.get(name), value) for name, value in desired.items())
    if isinstance(desired, list):
        found_items = observed if isinstance(observed, list) else []
        return len(found_items) == len(desired) and all(map(covers, found_items, desired))
    return bool(observed == desired) or (not desired and observed is None)
