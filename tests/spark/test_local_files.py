"""The checkpoint's file system: Hadoop's, less its forks."""

import stat
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def test_permissions_are_set_without_chmod(spark: SparkSession, tmp_path: Path) -> None:
    """Spark uses it for what it writes; files have their modes and their checksums, as with Hadoop's own."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop.fs
    path = hadoop.Path(f"file:{tmp_path}/made/file")
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getName() == "dev.streamjoin.LocalFiles"

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
