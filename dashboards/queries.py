"""PromQL of one StreamJoin: that of the variables `namespace` and `streamjoin`. `every` asks for all of some namespaces.

Series are summed over what a scrape adds (pod, instance): a driver that moves stays one line.
"""

from joinlib.metric.table import SERIES

WINDOW = "$__rate_interval"
_SOME = 'namespace=~"$namespace"'
_JOB = ('namespace="$namespace"', 'streamjoin="$streamjoin"')


def of(name: str, *matchers: str) -> str:
    """The series of a figure; a name that is not in the table is a KeyError."""
    return f"{known(name)}{{{', '.join((*_JOB, *matchers))}}}"


def every(name: str, *matchers: str) -> str:
    """The series of a figure of all StreamJoins of the namespaces that are chosen."""
    return f"{known(name)}{{{', '.join((_SOME, *matchers))}}}"


def known(name: str) -> str:
    """The series of a figure of everybody."""
    if name not in SERIES:
        msg = f"{name} is not a metric: it is not in joinlib/metric/table.py"
        raise KeyError(msg)
    return name


def total(expression: str, *by: str) -> str:
    return f"sum{_by(by)}({expression})"


def gauge(name: str, *by: str) -> str:
    """A gauge as it is. The greatest of its copies: for a moment an old pod's may still be there."""
    return f"max{_by(by)}({of(name)})"


def where(name: str, matcher: str, *by: str) -> str:
    """A gauge, for one value of a label."""
    return f"max{_by(by)}({of(name, matcher)})"


def rate(name: str, *by: str) -> str:
    """A counter's growth a second."""
    return total(f"rate({of(name)}[{WINDOW}])", *by)


def ratio(above: str, below: str) -> str:
    """Nothing, instead of NaN, where nothing happened."""
    return f"{above} / ({below} > 0)"


def share(parts: str, whole: str) -> str:
    """Each series over one that all have in common."""
    return f"{parts} / on () group_left () ({whole} > 0)"


def quantile(of_all: float, name: str) -> str:
    return quantile_of(of_all, of(f"{name}_bucket"))


def quantile_of(of_all: float, buckets: str) -> str:
    return f"histogram_quantile({of_all}, {total(f'rate({buckets}[{WINDOW}])', 'le')})"


def by_unit(expression: str) -> str:
    """A series for each unit, in the order of numbers: the label `at` is 0007, then 0010."""
    padded = f'label_replace({expression}, "padded", "000$1", "unit", "(.+)")'
    return f'sum by (at) (label_replace({padded}, "at", "$1", "padded", ".*(.{{4}})"))'


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)}) " if labels else ""
