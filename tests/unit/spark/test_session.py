"""Settings of the session that depend on where it runs."""

from joinlib.spark.session import _sockets


def test_sockets_lie_where_spark_takes_them() -> None:
    """Spark refuses to start with a folder of more than 60 bytes: then it talks by TCP."""
    assert _sockets("/tmp/streamjoin-x/python") == {
        "spark.python.unix.domain.socket.dir": "/tmp/streamjoin-x"
    }
    long = f"/{'long' * 20}/python"
    assert _sockets(long) == {"spark.python.unix.domain.socket.enabled": "false"}
