"""The rules over several fields that the API server can check: those of
the models, as CEL, each with its fix.

    place        where the rule stands; `*` is any entry of a map or list
    holds        what must be true there; `self` is the value at the place
    message      the error; it has no values, since CEL cannot bound the length of a number's text
    field        the field at fault, below the place

So mistakes are rejected at `kubectl apply`; what CEL cannot know (the SQL, columns in a schema, relative
paths, which are for local runs only) is left to the operator. Optional fields are read with `?`, so
Kubernetes 1.29 or later is needed.
"""

from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from joinlib.deploy import HEAP_MIN, JVM, MI, NAME_MAX, WORKER
from joinlib.spec.duration import PATTERN as DURATION
from joinlib.spec.duration import UNITS_US
from joinlib.spec.inputs import SOURCES, Debezium
from joinlib.spec.model import MAX_UNITS, RESERVED, SETTABLE, JoinSettings
from joinlib.spec.patterns import PATTERNS

UNITS = f"self.?join.units.orValue({JoinSettings().units})"
FOLDER = "(self.checkpoint.path + (has(self.checkpoint.reset) ? '@' + self.checkpoint.reset : ''))"
# Settings are fixed only once a driver has worked in the folder, and only for that folder.
FREE = (
    "!has(oldSelf.status) || !has(oldSelf.status.checkpoint) || !has(oldSelf.status.checkpoint.folder)"
    f" || oldSelf.status.checkpoint.folder != {FOLDER.replace('self', 'oldSelf.spec')}"
    f" || oldSelf.status.checkpoint.folder != {FOLDER.replace('self', 'self.spec')}"
)
AFRESH = "set it back, or begin a new checkpoint with another checkpoint.path or checkpoint.reset"
# An executor without any state: the smallest heap, the JVM, and the worker of each core.
BARE_MI, CORE_MI = (HEAP_MIN + JVM) // MI, WORKER // MI
WRITABLE = " && !v.readOnly && !has(v.secret)"
LARGEST_FIRST = "^" + "".join(f"([0-9]+{unit})?" for unit in UNITS_US) + "$"


@dataclass(frozen=True)
class CelRule:
    """A rule that must hold at a place of the kind."""

    place: str
    holds: str
    message: str
    field: str = ""

    def schema(self) -> dict[str, Any]:
        """Return the rule as an entry of x-kubernetes-validations."""
        at = {"fieldPath": self.field} if self.field else {}
        return {"rule": self.holds, "message": self.message, **at}


def rules() -> tuple[CelRule, ...]:
    """Return all rules."""
    return (*_names(), *_variables(), *_inputs(), *_output(), *_amounts(), *_letters(), *_paths(), *_pinned())


def exactly_one(place: str, fields: list[str]) -> CelRule:
    """The rule that exactly one of the fields is present."""
    given = ", ".join(f"has(self.{field})" for field in fields)
    names = f"{', '.join(fields[:-1])} or {fields[-1]}"
    return CelRule(place, f"[{given}].exists_one(is, is)", f"write exactly one of {names}")


def fitting(place: str, pattern: str) -> CelRule:
    """The rule that a text fits a pattern of the models; for a duration, also that its units are in order."""
    holds = f"self.matches(r'{pattern}')"
    return CelRule(
        place,
        holds if pattern != DURATION else f"{holds} && self.matches('{LARGEST_FIRST}')",
        PATTERNS[pattern],
    )


def _names() -> list[CelRule]:
    return [
        CelRule(
            "",
            f"self.metadata.name.size() <= {NAME_MAX}",
            f"is longer than {NAME_MAX} characters; pods and labels add to the name, so shorten it",
            ".metadata.name",
        ),
        CelRule(
            "",
            "self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
            "is also the name of a Service; begin with a letter and write lower-case letters, digits and '-'"
            " only",
            ".metadata.name",
        ),
        CelRule(
            "spec.inputs",
            "self.all(name, name.size() <= 63 && name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
            "SQL uses the name of an input; write letters, digits and '_', at most 63",
        ),
        CelRule(
            "spec",
            "!has(self.outputs)",
            "outputs are for a run on one machine; write a StreamJoin for each, with sql and output",
            ".outputs",
        ),
        *(
            CelRule(
                place,
                "self.all(name, name.size() <= 63 && name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
                "SQL uses this name; write letters, digits and '_', at most 63",
            )
            for place in ("spec.views", "spec.functions")  # no rule can see a map of values of any type
        ),
        CelRule(
            "spec.inputs",
            "self.all(a, self.all(b, a == b || a.lowerAscii() != b.lowerAscii()))",
            "two names differ in upper and lower case only, which is the same in SQL; rename one",
        ),
    ]


def _variables() -> list[CelRule]:
    return [
        CelRule(
            "spec.env",
            f"self.all(name, name.size() <= 253 && name.matches('{SETTABLE}') && !name.matches('{RESERVED}'))",
            "a name is not that of a credential; end it in _USER, _PASSWORD, _SECRET, _TOKEN, _KEY, _URI or"
            " the like",
        ),
    ]


def _inputs() -> list[CelRule]:
    timed = (
        "has(self.inputs[name].eventTime)"
        " || (has(self.inputs[name].postgres) && !has(self.inputs[name].postgres.changes))"
    )
    return [
        CelRule(
            "spec.inputs.*",
            "!has(self.role) || (self.role == 'table' ? has(self.files) ||"
            " (has(self.postgres) && !has(self.postgres.changes)) :"
            " !has(self.postgres) || has(self.postgres.changes))",
            "generator, kafka and postgres with changes are streams, other postgres is a table; remove role, or use"
            " another source",
            ".role",
        ),
        *_files(),
        *_changing(),
        CelRule(
            "spec.inputs.*.kafka",
            "!has(self.csv) || (!self.csv.header && (self.format == 'csv'"
            " || (self.csv.delimiter == ',' && self.csv.quote == '\"' && self.csv.__null__ == '')))",
            "is for format csv, and messages have no header; correct csv, or remove it",
            ".csv",
        ),
        *(
            CelRule(
                f"spec.inputs.*.{source}.csv",
                "self.delimiter != self.quote",
                "delimiter and quote are the same; change one of them",
                ".quote",
            )
            for source in ("files", "kafka")
        ),
        CelRule(
            "spec.inputs.*.kafka",
            "has(self.deadLetters) == (self.onBadMessage == 'deadLetter')",
            "deadLetters and onBadMessage: deadLetter belong together; write both or none",
            ".onBadMessage",
        ),
        *_registry(),
        *(rule for place in ("spec.inputs.*.kafka", "spec.output.kafka") for rule in _security(place)),
        *_encryption("spec.inputs.*.postgres.security"),
        *_encryption("spec.output.postgres.security"),
        CelRule(
            "spec",
            f"!has(self.?join.retention) || self.inputs.all(name, {timed} ||"
            " self.inputs[name].?role.orValue('') == 'table')",
            "join.retention needs eventTime on every stream; add it, or remove retention",
            ".join",
        ),
    ]


def _changing() -> list[CelRule]:
    changing = "has(self.changes) || has(self.upsert)"
    envelopes = "has(self.kafka) && self.kafka.format == 'debezium'"
    unset = " && ".join(
        f"self.debezium.{to_camel(name)} == '{value}'" for name, value in Debezium().model_dump().items()
    )
    return [
        CelRule(
            "spec.inputs.*",
            f"!({changing}) || (!has(self.generator) && (has(self.role) ? self.role == 'stream' :"
            " !has(self.postgres)))",
            "changes and upsert are for streams whose rows change: generated rows only come, and a table is read"
            " as it is; remove them, or use another source",
        ),
        CelRule(
            "spec.inputs.*",
            f"!({envelopes}) || (has(self.upsert) && !has(self.changes))",
            "kafka.format: debezium needs upsert, and says itself what its rows are; add upsert with the columns"
            " of the table's key, and remove changes",
        ),
        CelRule(
            "spec.inputs.*.kafka",
            f"!has(self.debezium) || self.format == 'debezium' || ({unset})",
            "is for format debezium; remove debezium, or write format: debezium",
            ".debezium",
        ),
    ]


def _output() -> list[CelRule]:
    keyed = "(has(self.key) && self.key.size() > 0)"
    return [
        CelRule(
            "spec.output",
            f"self.mode == 'upsert' ? {keyed} : self.mode == 'changelog' || !{keyed}",
            "key belongs to mode upsert, or changelog; write both or none",
            ".key",
        ),
        CelRule(
            "spec.output",
            "(self.mode != 'upsert' || !has(self.files)) && (self.mode != 'changelog' || !has(self.postgres))",
            "files take append and changelog, postgres takes append and upsert; correct mode",
            ".mode",
        ),
        CelRule(
            "spec.output",
            f"!has(self.kafka) || !{keyed} || !has(self.kafka.key) || self.kafka.key.size() == 0",
            "kafka.key stands beside key, which is the key of messages too; remove kafka.key",
            ".key",
        ),
        CelRule(
            "spec.output",
            f"!has(self.kafka) || self.kafka.keyFormat == 'text' || {keyed} ||"
            " (has(self.kafka.key) && self.kafka.key.size() > 0)",
            "kafka.keyFormat is not text, but messages have no key; add kafka.key, or remove keyFormat",
            ".kafka",
        ),
        CelRule(
            "spec.output",
            "!has(self.kafka) || (self.mode == 'append' ? self.kafka.format != 'debezium' :"
            " self.mode != 'upsert' || self.kafka.format != 'arrow')",
            "debezium is for changelog and upsert, arrow for append and changelog; correct kafka.format",
            ".mode",
        ),
    ]


def _files() -> list[CelRule]:
    return [
        CelRule(
            "spec.inputs.*.files",
            "!has(self.csv) || self.format == 'csv' || (self.csv.header && self.csv.delimiter == ',' &&"
            " self.csv.quote == '\"' && self.csv.__null__ == '')",
            "is for format csv; remove csv, or write format: csv",
            ".csv",
        ),
        CelRule(
            "spec.inputs.*.files",
            "has(self.archive) == (self.done == 'archive')",
            "archive and done: archive belong together; write both or none",
            ".done",
        ),
        CelRule(
            "spec.inputs.*",
            "!has(self.files) || self.files.done == 'keep' || self.?role.orValue('stream') != 'table'",
            "files.done is for streams: a table is read again; remove it",
            ".files",
        ),
    ]


def _registry() -> list[CelRule]:
    return [
        *(
            CelRule(
                place,
                "has(self.registry) == (self.format in ['avro', 'protobuf'])",
                "registry and format: avro or protobuf belong together; write both or none",
                ".format",
            )
            for place in ("spec.inputs.*.kafka", "spec.output.kafka")
        ),
        CelRule(
            "spec.inputs.*.kafka",
            "!has(self.registry) || !has(self.registry.message) || self.format == 'protobuf'",
            "registry.message is for format: protobuf; remove one of them",
            ".registry.message",
        ),
        CelRule(
            "spec.output.kafka",
            "!has(self.registry) || !has(self.registry.message)",
            "registry.message is for messages in Protobuf that are read; remove it",
            ".registry.message",
        ),
        *(rule for place in ("spec.inputs.*.kafka", "spec.output.kafka") for rule in _keys(place)),
        *(
            rule
            for place in ("spec.inputs.*.kafka.registry", "spec.output.kafka.registry")
            for rule in _registry_login(place)
        ),
    ]


def _keys(place: str) -> list[CelRule]:
    return [
        CelRule(
            place,
            "self.keyFormat == 'text' || self.keyFormat == self.format",
            "keyFormat is text, or avro or protobuf as format is; correct one of them",
            ".keyFormat",
        ),
        CelRule(
            place,
            "!has(self.registry) || !has(self.registry.keySubject) || self.keyFormat != 'text'",
            "registry.keySubject is for keyFormat: avro or protobuf; write both or none",
            ".registry.keySubject",
        ),
    ]


def _registry_login(place: str) -> list[CelRule]:
    return [
        CelRule(
            place,
            "[has(self.usernameFile), has(self.usernameEnv)].exists_one(is, is) =="
            " [has(self.passwordFile), has(self.passwordEnv)].exists_one(is, is)"
            " && !(has(self.usernameFile) && has(self.usernameEnv))"
            " && !(has(self.passwordFile) && has(self.passwordEnv))",
            "one of usernameFile and usernameEnv, and one of passwordFile and passwordEnv belong together; write both"
            " or none",
            ".url",
        ),
        CelRule(
            place,
            "!has(self.caFile) || self.url.startsWith('https:')",
            "caFile is for https; correct url, or remove it",
            ".url",
        ),
    ]


def _security(place: str) -> list[CelRule]:
    sasl, tls = "self.protocol.startsWith('SASL')", "self.protocol.endsWith('SSL')"
    users, passwords = (f"has(self.{what}File), has(self.{what}Env)" for what in ("username", "password"))
    login = f"[has(self.mechanism), {users}, {passwords}]"
    return [
        CelRule(
            f"{place}.security",
            f"{sasl} ? has(self.mechanism) && [{users}].exists_one(is, is) && [{passwords}].exists_one(is,"
            f" is) : !{login}.exists(is, is)",
            "mechanism, one of usernameFile and usernameEnv, and one of passwordFile and passwordEnv belong"
            " to SASL_PLAINTEXT and SASL_SSL; write all of them or none",
            ".protocol",
        ),
        CelRule(
            f"{place}.security",
            f"{tls} || ![has(self.caFile), has(self.certFile), has(self.keyFile)].exists(is, is)",
            "caFile, certFile and keyFile are for SSL and SASL_SSL; correct protocol, or remove them",
            ".protocol",
        ),
        CelRule(
            f"{place}.security",
            "has(self.certFile) == has(self.keyFile)",
            "certFile and keyFile belong together; write both or none",
            ".certFile",
        ),
    ]


def _encryption(place: str) -> list[CelRule]:
    return [
        CelRule(
            place,
            "self.mode.startsWith('verify') == has(self.caFile)",
            "verify-ca and verify-full check the server against caFile, other modes ignore it; correct mode"
            " or caFile",
            ".mode",
        ),
        CelRule(
            place,
            "has(self.certFile) == has(self.keyFile) && (!has(self.certFile) || self.mode != 'disable')",
            "certFile and keyFile belong together, and to TLS; write both or none",
            ".mode",
        ),
    ]


def _amounts() -> list[CelRule]:
    powers = [1 << k for k in range(MAX_UNITS.bit_length())]
    return [
        CelRule(
            "spec.join.units",
            f"self in {powers}",
            f"is not a power of two; write 1, 2, 4, 8, … or {MAX_UNITS}",
        ),
        CelRule(
            "spec.join.retention",
            "self.matches('[1-9]')",
            "is zero; write 10s, 500ms or 2h30m, or remove it",
        ),
        CelRule(
            "spec.output.files.compact.every",
            "self.matches('[1-9]')",
            "is zero; write 1m, for example, or remove compact",
        ),
        CelRule("spec.scaling.period", "self.matches('[1-9]')", "is zero; write 60s, for example"),
        CelRule("spec.executors", "self.min <= self.max", "is more than max; lower min or raise max", ".min"),
        CelRule(
            "spec.executors",
            "!has(self.instances) || (self.min <= self.instances && self.instances <= self.max)",
            "is not between min and max; change one of them",
            ".instances",
        ),
        CelRule(
            "spec.executors",
            "self.min + self.spare <= self.max",
            "and min are more than max; lower spare or raise max",
            ".spare",
        ),
        CelRule(
            "spec.executors",
            "!isQuantity(self.memory) || quantity(self.memory).isGreaterThan("
            f"quantity('{BARE_MI}Mi').add(self.cores * {CORE_MI << 20}))",
            f"leaves no room for state; write more than {BARE_MI}Mi and {CORE_MI}Mi for each core",
            ".memory",
        ),
        CelRule(
            "spec",
            f"!has(self.executors) || {UNITS} >= self.executors.max * self.executors.cores",
            "join.units is less than executors.max x executors.cores; raise units, or a core would have"
            " nothing to do",
            ".join",
        ),
        CelRule(
            "spec.scaling",
            "self.low < self.target && self.target < self.high",
            "the thresholds are out of order; write low < target < high",
            ".target",
        ),
    ]


def _letters() -> list[CelRule]:
    mounted = _mounted("self.deadLetters.path", WRITABLE)
    return [
        CelRule(
            "spec.inputs.*",
            "self.onLate != 'deadLetter' || has(self.eventTime)",
            "onLate needs an eventTime: without one no row is late; add it, or remove onLate",
            ".onLate",
        ),
        CelRule(
            "spec",
            "has(self.deadLetters) == (self.output.onError == 'deadLetter' || self.inputs.exists(name,"
            " self.inputs[name].onError == 'deadLetter' || self.inputs[name].onLate == 'deadLetter'))",
            "takes rows of onError: deadLetter and onLate: deadLetter; write both, or none",
            ".deadLetters",
        ),
        CelRule(
            "spec",
            f"!has(self.deadLetters) || ({mounted})",
            "lies under no volume that can be written; mount one that holds it: volumes: [{mountPath, claim}]",
            ".deadLetters.path",
        ),
    ]


def _paths() -> list[CelRule]:
    files = "has(self.inputs[name].files)"
    path = "self.inputs[name].files.path"
    output = "self.output.files.path"
    homeless = f"{files} && !({_mounted(path)})"
    mount = "mount one that holds it: volumes: [{mountPath, claim}]"
    store = "is on an object store, which is not supported yet; name a folder of a volume"
    letters = "self.inputs[name].kafka.deadLetters.path"
    lost = (
        "has(self.inputs[name].kafka) && has(self.inputs[name].kafka.deadLetters) &&"
        f" !({_mounted(letters, WRITABLE)})"
    )
    return [
        CelRule(
            "spec",
            f"self.inputs.all(name, !({lost}))",
            f"deadLetters.path of an input lies under no volume that can be written; {mount}",
            ".inputs",
        ),
        *(
            CelRule(place, "!self.contains('://')", store)
            for place in ("spec.inputs.*.files.path", "spec.output.files.path", "spec.checkpoint.path")
        ),
        CelRule(
            "spec",
            f"self.inputs.all(name, !({homeless}))",
            f"the path of an input lies under no volume; {mount}",
            ".inputs",
        ),
        CelRule(
            "spec",
            f"!has(self.output.files) || ({_mounted(output, WRITABLE)})",
            f"lies under no volume that can be written; {mount}",
            ".output.files.path",
        ),
        CelRule(
            "spec",
            _mounted("self.checkpoint.path", WRITABLE),
            f"lies under no volume that can be written; {mount}",
            ".checkpoint.path",
        ),
        CelRule(
            "spec",
            f"!has(self.output.files) || {_apart(output, FOLDER)}",
            "overlaps with the checkpoint's folder; use folders apart",
            ".output.files.path",
        ),
        CelRule(
            "spec",
            f"self.inputs.all(name, !{files} || ({_apart(path, FOLDER)}"
            f" && (!has(self.output.files) || {_apart(path, output)})))",
            "the folder of an input overlaps with that of the output or checkpoint; use folders apart",
            ".inputs",
        ),
    ]


def _pinned() -> list[CelRule]:
    same = " && ".join(f"has(self.spec.inputs[n].{s}) == has(oldSelf.spec.inputs[n].{s})" for s in SOURCES)
    return [
        CelRule(
            "",
            f"{FREE} || {_same_route()}",
            "rows lie where join.strategy and join.subgroups of the checkpoint have put them, and would not"
            f" be found elsewhere; {AFRESH}",
            ".spec.join",
        ),
        CelRule(
            "",
            f"{FREE} || self.spec.inputs.all(n, !(n in oldSelf.spec.inputs) || ({same}))",
            f"an input's source is of another kind than the one that the checkpoint was made with; {AFRESH}",
            ".spec.inputs",
        ),
    ]


def _same_route() -> str:
    """CEL for "the route is unchanged", as far as that can be decided without the SQL.

    Subgroups, or strategies multiway and binary, imply that there is a key. A change between auto and
    biclique is possible only where there is none; the driver knows, and rejects it.
    """
    specs = ("oldSelf.spec", "self.spec")
    was, now = (f"({s}.?join.strategy.orValue('auto') == 'biclique')" for s in specs)
    before, after = (_subgroups(s) for s in specs)
    keyed = " || ".join(
        f"{s}.?join.strategy.orValue('auto') in ['multiway', 'binary'] || {s}.?join.subgroups.orValue(1) > 1"
        for s in specs
    )
    return f"({was} == {now} ? (!{now} || {before} == {after}) : !({keyed}))"


def _subgroups(spec: str) -> str:
    """CEL for the number of subgroups: at most one for each unit, which is also the default."""
    units, named = UNITS.replace("self", spec), f"{spec}.?join.subgroups"
    return f"({named}.orValue({units}) < {units} ? {named}.orValue({units}) : {units})"


def _mounted(path: str, also: str = "") -> str:
    """CEL for "the path is on a volume"; relative paths are left to the operator."""
    root = "(v.mountPath.endsWith('/') ? v.mountPath : v.mountPath + '/')"
    return (
        f"!{path}.startsWith('/') || (has(self.volumes) && self.volumes.exists(v, ({path} +"
        f" '/').startsWith({root}){also}))"
    )


def _apart(left: str, right: str) -> str:
    """CEL for "neither folder contains the other"."""
    return f"!(({left} + '/').startsWith({right} + '/') || ({right} + '/').startsWith({left} + '/'))"
