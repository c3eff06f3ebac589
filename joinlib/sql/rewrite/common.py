"""Takes conditions that all branches of an OR share out of it, so that joins find their equalities.

    (a AND b) OR (a AND c)  =  a AND (b OR c)

Law: the same truth value, NULL included: AND distributes over OR in three-valued logic.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees


def factored(select: exp.Select) -> exp.Select:
    """Rewrite WHERE and the ON of inner joins in place; return the query."""
    if select.args.get("where"):
        trees.set_where(select, [one for part in trees.where_of(select) for one in _factors(part)])
    for join in select.args.get("joins") or []:
        if join.args.get("on"):
            trees.set_on(join, (one for p in trees.ands(join.args["on"]) for one in _factors(p)))
    return select


def _factors(node: exp.Expr) -> list[exp.Expr]:
    if not isinstance(node, exp.Or):
        return [node]
    branches = [[one for p in trees.ands(b) for one in _factors(p)] for b in trees.ors(node)]
    texts = [{trees.text(p) for p in branch} for branch in branches]
    shared = set.intersection(*texts)
    if not shared:
        return [node]
    found, seen = [], set[str]()
    for part in branches[0]:
        if (words := trees.text(part)) in shared and words not in seen:
            seen.add(words)
            found.append(part)
    rest = [[p for p in branch if trees.text(p) not in shared] for branch in branches]
    if all(rest):
        parts = [together for b in rest if (together := trees.together(b)) is not None]
        found.append(trees.either(parts))
    return found
