"""Nothing outside of an input's folder is read, moved or deleted, whatever links lie in it."""

from pathlib import Path

import pytest

from joinlib.errors import InputError
from joinlib.source.done import put_away
from joinlib.source.listing import ListedFile, file_at, listing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file, beside one whose file is nobody's business."""
    for name in ("in", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text("id\n1\n")
    return tmp_path / "in"


def seen(root: Path) -> list[str]:
    return [file.path for file in listing(root, "name", lambda _: False)]


@pytest.mark.parametrize(
    ("link", "target", "said"),
    [
        ("2.csv", "../elsewhere/1.csv", "2.csv: links to a file elsewhere, which is not followed"),
        ("x=1", "../elsewhere", "x=1: links to a folder, which is not followed"),
        ("x=1", ".", "x=1: links to a folder, which is not followed"),
    ],
)
def test_a_link_out_of_the_folder(root: Path, link: str, target: str, said: str) -> None:
    """It is told, and not left out without a word. What is found out late stays, too."""
    (root / link).symlink_to(target)
    with pytest.raises(InputError, match=said):
        seen(root)
    late = "2.csv" if link == "2.csv" else f"{link}/1.csv"
    was = (root / late).stat()
    with pytest.raises(InputError, match=said):
        put_away(root, ListedFile(late, was.st_size, was.st_mtime_ns), None)
    assert (root / "1.csv").exists()
    assert (root.parent / "elsewhere" / "1.csv").exists()


def test_links_that_are_followed(root: Path) -> None:
    """Those to files within the folder, as a volume of a ConfigMap has them, and the folder itself."""
    (root / "..data").mkdir()
    (root / "..data" / "2.csv").write_text("id\n2\n")
    (root / "2.csv").symlink_to("..data/2.csv")
    (root / "sub").symlink_to("../elsewhere")
    (root.parent / "link").symlink_to("in")
    for folder in (root, root.parent / "link"):
        assert seen(folder) == ["1.csv", "2.csv"]
    (root.parent / "one.csv").symlink_to("in/1.csv")
    assert file_at(root.parent / "one.csv", "") is not None
