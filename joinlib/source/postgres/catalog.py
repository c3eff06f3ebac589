"""Does the server allow it, and does the table fit what is declared? Asked before anything is made, and at
each start.
"""

from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.postgres.connection import literal, table_name
from joinlib.source.postgres.config import MOST_COLUMNS, PostgresLogConfig
from joinlib.source.postgres.decode import Target, readable
from joinlib.source.postgres.relation import FULL
from joinlib.source.postgres.table import check_columns

_OLDEST = 150000  # the first version whose publications say which columns and rows they hold
_KINDS = ("insert", "update", "delete", "truncate")
_SERVER = """
SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS named,
  current_setting('wal_level') AS wal_level, pg_is_in_recovery() AS standby, r.rolname::text AS role,
  r.rolsuper OR r.rolreplication OR EXISTS (
    SELECT FROM pg_roles m WHERE m.rolname = 'rds_replication' AND pg_has_role(m.oid, 'MEMBER')) AS allowed
FROM pg_roles r WHERE r.rolname = current_user
"""
_TABLE = """
SELECT json_build_object('schema', n.nspname, 'name', c.relname, 'kind', c.relkind, 'identity', c.relreplident,
  'types', (SELECT json_object_agg(a.attname, a.atttypid::bigint) FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'bases', (SELECT json_object_agg(t.oid, t.typbasetype::bigint) FROM pg_type t WHERE t.typtype = 'd'),
  'keys', (SELECT json_agg(json_build_object('primary', i.indisprimary, 'identity', i.indisreplident, 'columns',
      (SELECT json_agg(a.attname) FROM unnest(i.indkey) WITH ORDINALITY u(number, at)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number WHERE u.at <= i.indnkeyatts),
      'filled', (SELECT bool_and(a.attnotnull) FROM unnest(i.indkey) WITH ORDINALITY u(number, at)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number WHERE u.at <= i.indnkeyatts)))
    FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL),
  'published', (SELECT json_build_object('columns', p.attnames, 'filter', p.rowfilter)
    FROM pg_publication_tables p
    WHERE p.pubname = {publication} AND p.schemaname = n.nspname AND p.tablename = c.relname))::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass({table})
"""


@dataclass(frozen=True)
class Published:
    """A table that can be read: as the decoder needs it, and what a SELECT of the same rows says after FROM."""

    target: Target
    source: str


def check_server(cursor: Any, config: PostgresLogConfig) -> None:
    """Check that the server decodes its log for this user.

    Raises:
        SpecError: It does not.
    """
    cursor.execute(_SERVER)
    (row,) = cursor.fetch_arrow_table().to_pylist()
    place = f"{config.server.place}.postgres.changes"
    if row["version"] < _OLDEST:
        raise SpecError(f"{place}: the server is PostgreSQL {row['named']}; 15 or newer is needed")
    if row["standby"]:
        raise SpecError(f"{place}: the server is a standby; name the primary as host")
    if row["wal_level"] != "logical":
        raise SpecError(
            f"{place}: the server has wal_level = {row['wal_level']}, which does not say what changed; run ALTER"
            " SYSTEM SET wal_level = logical and restart it"
        )
    if not row["allowed"]:
        raise SpecError(
            f"{place}: user {row['role']} may not read the log; run ALTER ROLE {row['role']} REPLICATION"
            " (on Amazon RDS: GRANT rds_replication)"
        )


def published(cursor: Any, config: PostgresLogConfig, schema: pa.Schema) -> Published:
    """Return a table that can be read, by its publication.

    Raises:
        SpecError: It cannot; the message says what to change.
    """
    place = config.server.place
    if config.upsert and len(schema) > MOST_COLUMNS:
        raise SpecError(f"{place}: an upsert of PostgreSQL has at most {MOST_COLUMNS} columns; declare fewer")
    _check_publication(cursor, config)
    name = table_name(config.table)
    cursor.execute(_TABLE.format(publication=literal(config.publication), table=literal(name)))
    found = cursor.fetch_arrow_table().column(0).to_pylist()
    if not found:
        raise SpecError(f"{place}: relation {config.table} does not exist; correct its name")
    facts = orjson.loads(found[0])
    plain = f"{facts['schema']}.{facts['name']}"
    if facts["published"] is None:
        raise SpecError(
            f"{place}: publication {config.publication} does not hold table {plain}; run ALTER PUBLICATION"
            f" {config.publication} ADD TABLE {plain} (of a partitioned table: with publish_via_partition_root)"
        )
    cursor.execute(f"SELECT * FROM {name} LIMIT 0")
    check_columns(place, f"table {plain}", cursor.fetch_arrow_table().schema, schema)
    target = Target(config, schema, (facts["schema"], facts["name"]), _bases(facts))
    _check_columns(target, facts)
    _check_key(target, facts)
    only = "" if facts["kind"] == "p" else "ONLY "
    where = f" WHERE {facts['published']['filter']}" if facts["published"]["filter"] else ""
    return Published(target, f"{only}{name}{where}")


def _bases(facts: dict[str, Any]) -> dict[int, int]:
    """Return the types that domains are made of, through domains of domains."""
    found = {int(domain): int(base) for domain, base in (facts["bases"] or {}).items()}
    for domain, base in found.items():
        while base in found:
            base = found[base]
        found[domain] = base
    return found


def _check_publication(cursor: Any, config: PostgresLogConfig) -> None:
    place, name = config.server.place, config.publication
    said = ", ".join(f"pub{kind}" for kind in _KINDS)
    cursor.execute(f"SELECT {said} FROM pg_publication WHERE pubname = {literal(name)}")
    found = cursor.fetch_arrow_table().to_pylist()
    if not found:
        raise SpecError(
            f"{place}: publication {name} does not exist; run CREATE PUBLICATION {name} FOR TABLE {config.table}"
        )
    silent = [kind for kind in _KINDS if not found[0][f"pub{kind}"]]
    if silent:
        raise SpecError(
            f"{place}: publication {name} leaves out {silent[0]}; run ALTER PUBLICATION {name} SET (publish ="
            f" '{', '.join(_KINDS)}')"
        )


def _check_columns(target: Target, facts: dict[str, Any]) -> None:
    config = target.config
    for field in target.schema:
        if field.name not in facts["published"]["columns"]:
            raise SpecError(
                f"{target.place}: publication {config.publication} leaves out column '{field.name}' of table"
                f" {target.name}; add it there, or remove it from the schema (a generated column is not"
                " published)"
            )
        kind = facts["types"][field.name]
        if not readable(target.bases.get(kind, kind), field.type):
            raise SpecError(
                f"{target.place}: column '{field.name}' of table {target.name} cannot be read from the log as"
                f" {field.type}; declare it as STRING"
            )


def _check_key(target: Target, facts: dict[str, Any]) -> None:
    """Check that the key of an upsert is one, and that old rows are sent as far as they are needed."""
    key, name, identity = set(target.config.key), target.name, facts["identity"]
    full = f"run ALTER TABLE {name} REPLICA IDENTITY FULL"
    if not key:
        if identity != FULL:
            raise SpecError(
                f"{target.place}: old rows of table {name} are not sent, and the input has no key; add upsert:"
                f" {{key: [...]}} with the table's primary key, or {full}"
            )
        return
    keys = facts["keys"] or []
    if not any(set(k["columns"]) == key and k["filled"] for k in keys):
        primary = next((k["columns"] for k in keys if k["primary"]), None)
        mend = f"write upsert: {{key: [{', '.join(primary)}]}}" if primary else (
            f"table {name} has no primary key: remove upsert and {full}"
        )  # fmt: skip
        raise SpecError(f"{target.place}: upsert.key is no primary or unique key of table {name}; {mend}")
    held = {"d": lambda k: k["primary"], "i": lambda k: k["identity"]}.get(identity)
    sent = {column for k in keys if held and held(k) for column in k["columns"]}
    if identity != FULL and not key <= sent:
        raise SpecError(
            f"{target.place}: the replica identity of table {name} does not hold upsert.key, so deletions could"
            f" not be told; use its columns ({', '.join(sorted(sent)) or 'it has none'}) as the key, or {full}"
        )
