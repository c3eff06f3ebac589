"""Checks and describes results in a folder: whether readers can see all columns, and how fast it fills."""

from collections.abc import Iterator

from joinlib.errors import SpecError
from joinlib.model.stage import Pipeline
from joinlib.spec.duration import text as duration
from joinlib.spec.model import Spec

_DAY_US = 86_400_000_000
# Readers of folders such as batch=7 turn the name into a column, which hides one of that name in the files.
_FOLDER = "batch"


def check(plan: Pipeline) -> None:
    """Reject a result with a column that readers of the folder would not see.

    Raises:
        SpecError: if a column has the name of the partition in the folders' names.
    """
    for name in plan.schema.names:
        if name.casefold() == _FOLDER:
            raise SpecError(
                f"the result has a column {name!r}, and readers of output.files would take the number in the"
                f" folders' names, {_FOLDER}=7, for it; rename it, such as AS {_FOLDER}_id"
            )


def describe(spec: Spec) -> Iterator[str]:
    """Describe the output folder in lines for people; there are none where results do not go to files."""
    files = spec.output.files
    if files is None:
        return
    most = "one after the other" if not spec.pace_us else f"at most one in {duration(spec.pace_us)}"
    batches = f"batches: {most} (batch.interval)"
    if files.compact is None:
        yield (
            f"a folder for each batch with results, {_FOLDER}=N, and in it a {files.format} file for each"
            " task that has some"
        )
        yield f"{batches}{_a_day(spec.pace_us)}; output.files.compact gathers small ones"
        return
    yield (
        f"a folder for batches of {duration(files.compact.every_us)}, or for {files.compact.size_bytes:,}"
        " bytes (compact),"
    )
    yield (
        f"  named after the last, {_FOLDER}=N, with one {files.format} file for all that are small; readers"
        " see them all then"
    )
    yield (
        f"{batches}{_a_day(max(spec.pace_us, files.compact.every_us))}, and one for each time that so many"
        " bytes are there"
    )


def _a_day(pace_us: int) -> str:
    return f", so up to {_DAY_US // pace_us:,} folders a day" if pace_us else ", as many folders as batches"
