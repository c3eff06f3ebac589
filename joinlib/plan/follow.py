"""Lets a plan follow a checkpoint: what it stores is stored on, although the query reads it no more.

Law: where the plain plan fits the checkpoint, it is the plan; columns are stored on only if that makes the state fit.
"""

from collections.abc import Callable, Mapping
from typing import Any

from joinlib.model.fingerprint import as_json, compare
from joinlib.model.stage import Pipeline
from joinlib.model.stored import StoredColumns, stored_columns


def stored_on(known: Mapping[str, Any], plan: Callable[[StoredColumns], Pipeline]) -> StoredColumns:
    """Return which columns a plan is to store, besides those that its query reads, to go on from a checkpoint.

    known: the fingerprint of the plan that the checkpoint was begun with. plan: makes the plan that stores columns.
    """
    try:
        stored = stored_columns(known)
    except (KeyError, TypeError, IndexError):  # of a version that cannot be followed
        return StoredColumns()
    return (
        stored if not _fits(known, plan(StoredColumns())) and _fits(known, plan(stored)) else StoredColumns()
    )


def _fits(known: Mapping[str, Any], plan: Pipeline) -> bool:
    return not compare(dict(known), as_json(plan))
