"""The checkpoint's file system: Hadoop's, less its forks, and with names that are taken once."""

import stat
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def files_of(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's classes, and the file system of a path."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop.fs
    files = hadoop.Path(path).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getName() == "dev.streamjoin.LocalFiles"
    return hadoop, files


def test_permissions_are_set_without_chmod(spark: SparkSession, tmp_path: Path) -> None:
    """Spark uses it for what it writes; files have their modes and their checksums, as with Hadoop's own."""
    hadoop, files = files_of(spark, f"file:{tmp_path}/made/file")
    path = hadoop.Path(f"file:{tmp_path}/made/file")

    out = files.create(path)
    out.write(7)
    out.close()
    made = tmp_path / "made" / "file"
    assert made.read_bytes() == b"\x07"
    assert (tmp_path / "made" / ".file.crc").exists()
    assert stat.S_IMODE(made.stat().st_mode) == 0o644
    for mode in (0o600, 0o755, 0o1777):
        files.setPermission(path, hadoop.permission.FsPermission(f"{mode:o}"))
        assert stat.S_IMODE(made.stat().st_mode) == mode

    made.write_bytes(b"\x08")  # behind its back
    with pytest.raises(Py4JJavaError, match="Checksum"):
        files.open(path).read()


def test_of_two_drivers_one_writes_a_log(spark: SparkSession, tmp_path: Path) -> None:
    """The second rename of a name is refused, and what the first wrote stays; that of a folder is as ever."""
    hadoop, files = files_of(spark, f"file:{tmp_path}")
    for name in ("first", "second"):
        out = files.create(hadoop.Path(f"file:{tmp_path}/{name}"))
        out.writeBytes(name)
        out.close()
    target = hadoop.Path(f"file:{tmp_path}/log/7")
    (tmp_path / "log").mkdir()
    assert files.rename(hadoop.Path(f"file:{tmp_path}/first"), target)
    assert not files.rename(hadoop.Path(f"file:{tmp_path}/second"), target)
    assert (tmp_path / "log" / "7").read_bytes() == b"first"
    assert sorted(f.name for f in tmp_path.iterdir()) == [".second.crc", "log", "second"]
    assert files.open(target).read() == ord("f")  # its checksum came with it
    assert files.rename(hadoop.Path(f"file:{tmp_path}/log"), hadoop.Path(f"file:{tmp_path}/logs"))
    assert (tmp_path / "logs" / ".7.crc").exists()
