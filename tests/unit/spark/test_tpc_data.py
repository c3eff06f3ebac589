"""Tables for the tests: made once, whole or not at all."""

from pathlib import Path

import pytest

from tests.spark.tpc import data


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_nothing_stays_of_what_could_not_be_made(tmp_path: Path, error: type[BaseException]) -> None:
    """The error is told; later it may work."""

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise error

    with pytest.raises(error):
        data._once(tmp_path / "tables", fail)
    assert not [*tmp_path.iterdir()]
    made = data._once(tmp_path / "tables", lambda folder: (folder / "whole").touch())
    assert [*tmp_path.rglob("*")] == [made, made / "whole"]
