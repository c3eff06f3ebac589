"""A real PostgreSQL for tests: Debian's package, a private folder and port, ended by its process id.

    with Database() as db:
        db.execute("CREATE TABLE t (k bigint)")
        db.crash(); db.start()

It speaks TLS, with a certificate for `localhost` that its own authority has signed; the tests' clients dial 127.0.0.1.
As root it runs as the user `postgres`, because PostgreSQL refuses to run as root. Installed by apt where it is missing.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
from adbc_driver_postgresql import dbapi

from tests.patience import HUNG_S
from tests.ports import free_port
from tests.watch import Watch

PASSWORD = "s3cret/ gate:key@42"  # holds what a URI would have to escape
USER, NAME = "joiner", "shop"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "on",  # it is killed in tests, and must come back whole
    "shared_buffers": "32MB",
    "max_connections": "20",
    "superuser_reserved_connections": "3",
    "log_min_duration_statement": "-1",
    "log_statement": "all",
    "jit": "off",
    "ssl": "on",
}
_CERTIFICATES = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout data/server.key -out server.csr
printf subjectAltName=DNS:localhost > names
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out data/server.crt
chmod 600 data/server.key
"""


class Database:
    """One server with one database and one user."""

    def __init__(self, **settings: str) -> None:
        self.settings = {**_SETTINGS, **settings}
        self.folder = Path(tempfile.mkdtemp(prefix="streamjoin-postgres-"))
        self.bin = _programs()
        self.user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: Watch | None = None
        self._init()

    def __enter__(self) -> Self:
        self.start()
        self.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'", as_superuser=True)
        self.execute(f"CREATE DATABASE {NAME} OWNER {USER}", as_superuser=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.crash()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def fields(self) -> dict[str, object]:
        """Where it is, as the spec says it."""
        return {"host": "127.0.0.1", "port": self.port, "database": NAME, "user": USER}

    @property
    def authority(self) -> Path:
        """The certificate of who has signed the server's."""
        return self.folder / "ca.crt"

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def log(self) -> str:
        """Everything the server has logged, every statement included."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Returns when it takes connections."""
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-k", self.folder, *options],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True, **self._as_user(),
            )  # fmt: skip
        self._watch = Watch(self._process.pid, "QUIT")
        end = time.monotonic() + HUNG_S
        while True:
            try:
                self.execute("SELECT 1", as_superuser=True)
            except Exception:  # noqa: BLE001 - whatever it is, it is not ready
                assert self._process.poll() is None, self.log[-2000:]
                assert time.monotonic() < end, "PostgreSQL does not answer"
                time.sleep(0.1)
            else:
                return

    def crash(self) -> None:
        """Ends it at once, with every connection, as a crash of its machine looks to its clients."""
        if self._process is not None and self._watch is not None:
            self._watch.off()
            self._process.send_signal(
                signal.SIGQUIT
            )  # immediate shutdown: recovers from its log when started again
            self._process.wait(HUNG_S)
            self._process = None

    def execute(self, sql: str, as_superuser: bool = False) -> pa.Table | None:
        """Runs one statement and commits; rows if it has any."""
        with self.connected(as_superuser) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetch_arrow_table() if cursor.description else None

    def fill(self, table: str, rows: pa.Table) -> None:
        """Makes a table of these rows."""
        with self.connected() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(table, rows, mode="create")
        self.execute(f'ANALYZE "{table}"')

    @contextlib.contextmanager
    def connected(self, as_superuser: bool = False) -> Iterator[dbapi.Connection]:
        """A connection of the test's own."""
        user, name = ("postgres", "postgres") if as_superuser else (USER, NAME)
        address = f"host=127.0.0.1 port={self.port} dbname={name} user={user} password='{PASSWORD}' connect_timeout=5"
        with dbapi.connect(address, autocommit=True) as connection:
            yield connection

    def _init(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD + "\n")
        if self.user is not None:
            for path in (self.folder, secret):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        subprocess.run(
            [self.bin / "initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8",
             "--locale=C.UTF-8", f"--pwfile={secret}", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as_user(),
        )  # fmt: skip
        secret.unlink()
        subprocess.run(
            ["sh", "-ec", _CERTIFICATES], cwd=self.folder, check=True, capture_output=True, **self._as_user()
        )

    def _as_user(self) -> dict[str, object]:
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}


def _programs() -> Path:
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[4]))
    if not found:
        assert os.getuid() == 0, "PostgreSQL is missing; install Debian's package postgresql"
        # Its package would start a server of its own: it is told to make no cluster.
        Path("/etc/postgresql-common").mkdir(exist_ok=True)
        with open("/etc/postgresql-common/createcluster.conf", "a") as conf:
            conf.write("create_main_cluster = false\n")
        subprocess.run([Path(__file__).parents[2] / "tools" / "apt", "postgresql"], check=True)
        return _programs()
    return found[-1].parent
