"""Lets a plan follow a checkpoint: rows lie as they lie there, and what it stores is stored on, read or not.

Law: where the plain plan fits the checkpoint, it is the plan; columns are stored on only if that makes the state fit, and
conditions are decided later than they could be only if that does.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from joinlib.errors import SpecError
from joinlib.model.fingerprint import as_json, compare, scattered, stores_once
from joinlib.model.stage import Pipeline
from joinlib.model.stored import StoredColumns, stored_columns, stored_conditions

_STRANGE = (KeyError, TypeError, AttributeError, IndexError)  # of a version that cannot be followed


class _PlanMaker(Protocol):
    def __call__(self, *, cells: bool, once: bool, stored: StoredColumns) -> Pipeline: ...


def following(known: Mapping[str, Any] | None, plan: _PlanMaker) -> tuple[Pipeline, StoredColumns]:
    """Return the plan that goes on from a checkpoint, and what it stores besides what its query reads.

    If none goes on, it is the plain plan, whose differences say why not.

    Args:
        known: The fingerprint of the plan that the checkpoint was begun with; None: there is none.
        plan: Makes a plan.
    """
    lying = {"cells": in_cells(known), "once": once(known)}
    plain = plan(**lying, stored=StoredColumns())
    if known is None or _fits(known, plain):
        return plain, StoredColumns()
    try:
        stored = stored_columns(known)
        conditions = (None, *(stored_conditions(known, last) for last in (False, True)), frozenset[str]())
    except _STRANGE:
        return plain, StoredColumns()
    # None of the query's may be decided later, or new ones, or those that are in no join, or all.
    for by in conditions:
        tried = replace(stored, conditions=by)
        try:
            kept = plan(**lying, stored=tried)
        except SpecError:  # it is of another query
            continue
        if _fits(known, kept):
            return kept, tried
    return plain, StoredColumns()


def in_cells(known: Mapping[str, Any] | None) -> bool:
    """Return whether rows of bands may lie in cells: those of an earlier version lie at random, and go on so."""
    try:
        return known is None or not scattered(known)
    except _STRANGE:
        return True


def once(known: Mapping[str, Any] | None) -> bool:
    """Return whether self-joins store their stream once: those of an earlier version store it twice, and go on so."""
    try:
        return known is None or stores_once(known)
    except _STRANGE:
        return True


def _fits(known: Mapping[str, Any], plan: Pipeline) -> bool:
    return not compare(dict(known), as_json(plan))
