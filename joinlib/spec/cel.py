"""Which rules over several fields can the API server check? Those of the models, as CEL, each with its fix.

    place        where the rule stands; `*` is any entry of a map or list
    holds        what must be true there; `self` is the value at the place
    message      what is said otherwise; without the values, as CEL has no text of bounded length for a number
    field        the field at fault, below the place

What a user writes wrong is refused at `kubectl apply`; what CEL cannot know (the SQL, columns in a schema,
relative paths, which are for local runs only) is left to the operator. Optional fields are read with `?`, so a
Kubernetes of at least 1.29 is needed.
"""

from dataclasses import dataclass
from typing import Any

from joinlib.spec.base import QUANTITY
from joinlib.spec.duration import PATTERN as DURATION
from joinlib.spec.duration import UNITS_US
from joinlib.spec.inputs import SOURCES
from joinlib.spec.kafka import SERVERS, TOPIC, VARIABLE
from joinlib.spec.model import KEY, LOGIN, MAX_UNITS, MOUNT, RESERVED, Join
from joinlib.spec.pods import CPU

MAX_NAME = 40  # NAME-driver-0 and NAME-exec-… must be names of pods and labels
UNITS = f"self.?join.units.orValue({Join().units})"
FOLDER = "(self.checkpoint.path + (has(self.checkpoint.reset) ? '@' + self.checkpoint.reset : ''))"
# Nothing is pinned before a driver has worked in the folder, and nothing in another one.
FREE = (
    "!has(oldSelf.status) || !has(oldSelf.status.checkpoint) || !has(oldSelf.status.checkpoint.folder)"
    f" || oldSelf.status.checkpoint.folder != {FOLDER.replace('self', 'oldSelf.spec')}"
    f" || oldSelf.status.checkpoint.folder != {FOLDER.replace('self', 'self.spec')}"
)
AFRESH = "set it back, or begin a new checkpoint with another checkpoint.path or checkpoint.reset"
# What the models say by a pattern is a rule here too: "should match '^([1-9]…" is no help.
PATTERNS = {
    r"\S": "is empty; write a SELECT",
    DURATION: "is no duration; write each unit once and the largest first, such as 10s, 500ms or 2h30m",
    QUANTITY: "is no amount of memory; write 8Gi or 512Mi",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$": "is no word; write letters, digits, '.', '_' and '-', at most 63",
    MOUNT: "could hide what the image has; write /data, /mnt, /secrets, /srv, /state or /volumes, or a folder below",
    r"^/": "is no absolute path; write /srv/data, for example",
    r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$": "is no name of an object; write lower-case letters, digits, '-' and '.'",
    CPU: "is no amount of CPU; write 2 or 500m",
    SERVERS: "is no list of brokers; write HOST:PORT, several with commas between",
    TOPIC: "is no name of a topic; write letters, digits, '.', '_' and '-', at most 249",
    KEY: "is no entry of a Secret; write letters, digits, '.', '_' and '-'",
    VARIABLE: "is no name of an environment variable; write letters, digits and '_'",
    r"^\S+$": "is no image; write it without spaces, such as registry.example/streamjoin:1",
}
# An executor without any state: least heap, JVM, and the workers of a core; see joinlib.spark.cluster.
BARE_MI, CORE_MI = 512 + 300, 150
WRITABLE = " && !v.readOnly && !has(v.secret)"
LARGEST_FIRST = "^" + "".join(f"([0-9]+{unit})?" for unit in UNITS_US) + "$"


@dataclass(frozen=True)
class Rule:
    """Something that must hold at a place of the kind."""

    place: str
    holds: str
    message: str
    field: str = ""

    def schema(self) -> dict[str, Any]:
        """As an entry of x-kubernetes-validations."""
        at = {"fieldPath": self.field} if self.field else {}
        return {"rule": self.holds, "message": self.message, **at}


def rules() -> tuple[Rule, ...]:
    """All of them."""
    return (*_names(), *_variables(), *_inputs(), *_amounts(), *_paths(), *_pinned())


def exactly_one(place: str, fields: list[str]) -> Rule:
    """One of the fields is there, and no other."""
    given = ", ".join(f"has(self.{field})" for field in fields)
    names = f"{', '.join(fields[:-1])} or {fields[-1]}"
    return Rule(place, f"[{given}].exists_one(is, is)", f"write exactly one of {names}")


def fitting(place: str, pattern: str) -> Rule:
    """A text fits a pattern of the models; a duration also has its units in order, which the model asks for too."""
    holds = f"self.matches(r'{pattern}')"
    return Rule(
        place,
        holds if pattern != DURATION else f"{holds} && self.matches('{LARGEST_FIRST}')",
        PATTERNS[pattern],
    )


def _names() -> list[Rule]:
    return [
        Rule(
            "",
            f"self.metadata.name.size() <= {MAX_NAME}",
            f"is longer than {MAX_NAME} characters; pods and labels add to the name, so shorten it",
            ".metadata.name",
        ),
        Rule(
            "",
            "self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
            "names a Service too; begin with a letter and write lower-case letters, digits and '-' only",
            ".metadata.name",
        ),
        Rule(
            "spec.inputs",
            "self.all(name, name.size() <= 63 && name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
            "an input is called by its name in SQL; write letters, digits and '_', at most 63",
        ),
        Rule(
            "spec.inputs",
            "self.all(a, self.all(b, a == b || a.lowerAscii() != b.lowerAscii()))",
            "two names differ in upper and lower case only, which is the same in SQL; rename one",
        ),
    ]


def _variables() -> list[Rule]:
    return [
        Rule(
            "spec.env",
            f"self.all(name, name.size() <= 253 && name.matches('{LOGIN}') && !name.matches('{RESERVED}'))",
            "a name is none of a variable of a login; end it in _USER, _PASSWORD, _SECRET, _TOKEN, _KEY, _URI or the like",
        ),
    ]


def _inputs() -> list[Rule]:
    timed = "has(self.inputs[name].eventTime) || has(self.inputs[name].postgres)"
    return [
        Rule(
            "spec.inputs.*",
            "!has(self.role) || (self.role == 'table' ? has(self.files) || has(self.postgres) : !has(self.postgres))",
            "generator and kafka are streams, postgres is a table; remove role, or use another source",
            ".role",
        ),
        Rule(
            "spec.inputs.*.files",
            "!has(self.csv) || self.format == 'csv'"
            " || (self.csv.header && self.csv.delimiter == ',' && self.csv.quote == '\"' && self.csv.__null__ == '')",
            "is for format csv; remove csv, or write format: csv",
            ".csv",
        ),
        Rule(
            "spec.inputs.*.files",
            "has(self.archive) == (self.done == 'archive')",
            "archive and done: archive belong together; write both or none",
            ".done",
        ),
        Rule(
            "spec.inputs.*",
            "!has(self.files) || self.files.done == 'keep' || self.?role.orValue('stream') != 'table'",
            "files.done is for streams: a table is read again; remove it",
            ".files",
        ),
        Rule(
            "spec.inputs.*.kafka",
            "!has(self.csv) || (!self.csv.header && (self.format == 'csv'"
            " || (self.csv.delimiter == ',' && self.csv.quote == '\"' && self.csv.__null__ == '')))",
            "is for format csv, and messages have no header; correct csv, or remove it",
            ".csv",
        ),
        Rule(
            "spec.inputs.*.kafka",
            "has(self.deadLetters) == (self.onBadMessage == 'deadLetter')",
            "deadLetters and onBadMessage: deadLetter belong together; write both or none",
            ".onBadMessage",
        ),
        *(rule for place in ("spec.inputs.*.kafka", "spec.output.kafka") for rule in _security(place)),
        *_encryption("spec.inputs.*.postgres.security"),
        Rule(
            "spec",
            f"!has(self.?join.retention) || self.inputs.all(name, {timed} || self.inputs[name].?role.orValue('') == 'table')",
            "join.retention needs eventTime on every stream; add it, or remove retention",
            ".join",
        ),
    ]


def _security(place: str) -> list[Rule]:
    sasl, tls = "self.protocol.startsWith('SASL')", "self.protocol.endsWith('SSL')"
    users, passwords = (f"has(self.{what}File), has(self.{what}Env)" for what in ("username", "password"))
    login = f"[has(self.mechanism), {users}, {passwords}]"
    return [
        Rule(
            f"{place}.security",
            f"{sasl} ? has(self.mechanism) && [{users}].exists_one(is, is) && [{passwords}].exists_one(is, is)"
            f" : !{login}.exists(is, is)",
            "mechanism, one of usernameFile and usernameEnv, and one of passwordFile and passwordEnv belong to"
            " SASL_PLAINTEXT and SASL_SSL; write all of them or none",
            ".protocol",
        ),
        Rule(
            f"{place}.security",
            f"{tls} || ![has(self.caFile), has(self.certFile), has(self.keyFile)].exists(is, is)",
            "caFile, certFile and keyFile are for SSL and SASL_SSL; correct protocol, or remove them",
            ".protocol",
        ),
        Rule(
            f"{place}.security",
            "has(self.certFile) == has(self.keyFile)",
            "certFile and keyFile belong together; write both or none",
            ".certFile",
        ),
    ]


def _encryption(place: str) -> list[Rule]:
    return [
        Rule(
            place,
            "self.mode.startsWith('verify') == has(self.caFile)",
            "verify-ca and verify-full know the server by caFile, other modes do not look at it; correct mode or caFile",
            ".mode",
        ),
        Rule(
            place,
            "has(self.certFile) == has(self.keyFile) && (!has(self.certFile) || self.mode != 'disable')",
            "certFile and keyFile belong together, and to TLS; write both or none",
            ".mode",
        ),
    ]


def _amounts() -> list[Rule]:
    powers = [1 << k for k in range(MAX_UNITS.bit_length())]
    return [
        Rule(
            "spec.join.units",
            f"self in {powers}",
            f"is no power of two; write 1, 2, 4, 8, … or {MAX_UNITS}",
        ),
        Rule(
            "spec.join.retention",
            "self.matches('[1-9]')",
            "is no time at all; write 10s, 500ms or 2h30m, or remove it",
        ),
        Rule(
            "spec.output.files.compact.every",
            "self.matches('[1-9]')",
            "is no time at all; write 1m, for example, or remove compact",
        ),
        Rule("spec.scaling.period", "self.matches('[1-9]')", "is no time at all; write 60s, for example"),
        Rule("spec.executors", "self.min <= self.max", "is more than max; lower min or raise max", ".min"),
        Rule(
            "spec.executors",
            "!has(self.instances) || (self.min <= self.instances && self.instances <= self.max)",
            "is not between min and max; change one of them",
            ".instances",
        ),
        Rule(
            "spec.executors",
            "!isQuantity(self.memory) || quantity(self.memory).isGreaterThan("
            f"quantity('{BARE_MI}Mi').add(self.cores * {CORE_MI << 20}))",
            f"leaves no room for state; write more than {BARE_MI}Mi and {CORE_MI}Mi for each core",
            ".memory",
        ),
        Rule(
            "spec",
            f"!has(self.executors) || {UNITS} >= self.executors.max * self.executors.cores",
            "join.units is less than executors.max x executors.cores; raise units, or a core would have nothing to do",
            ".join",
        ),
        Rule(
            "spec.scaling",
            "self.low < self.target && self.target < self.high",
            "the thresholds are out of order; write low < target < high",
            ".target",
        ),
    ]


def _paths() -> list[Rule]:
    files = "has(self.inputs[name].files)"
    path = "self.inputs[name].files.path"
    output = "self.output.files.path"
    homeless = f"{files} && !({_mounted(path)})"
    mount = "mount one that holds it: volumes: [{mountPath, claim}]"
    store = "is on an object store, which is not supported yet; name a folder of a volume"
    letters = "self.inputs[name].kafka.deadLetters.path"
    lost = f"has(self.inputs[name].kafka) && has(self.inputs[name].kafka.deadLetters) && !({_mounted(letters, WRITABLE)})"
    return [
        Rule(
            "spec",
            f"self.inputs.all(name, !({lost}))",
            f"deadLetters.path of an input lies under no volume that can be written; {mount}",
            ".inputs",
        ),
        *(
            Rule(place, "!self.contains('://')", store)
            for place in ("spec.inputs.*.files.path", "spec.output.files.path", "spec.checkpoint.path")
        ),
        Rule(
            "spec",
            f"self.inputs.all(name, !({homeless}))",
            f"the path of an input lies under no volume; {mount}",
            ".inputs",
        ),
        Rule(
            "spec",
            f"!has(self.output.files) || ({_mounted(output, WRITABLE)})",
            f"lies under no volume that can be written; {mount}",
            ".output.files.path",
        ),
        Rule(
            "spec",
            _mounted("self.checkpoint.path", WRITABLE),
            f"lies under no volume that can be written; {mount}",
            ".checkpoint.path",
        ),
        Rule(
            "spec",
            f"!has(self.output.files) || {_apart(output, FOLDER)}",
            "overlaps with the checkpoint's folder; use folders apart",
            ".output.files.path",
        ),
        Rule(
            "spec",
            f"self.inputs.all(name, !{files} || ({_apart(path, FOLDER)}"
            f" && (!has(self.output.files) || {_apart(path, output)})))",
            "the folder of an input overlaps with that of the output or checkpoint; use folders apart",
            ".inputs",
        ),
    ]


def _pinned() -> list[Rule]:
    units = UNITS.replace("self", "self.spec")
    before = UNITS.replace("self", "oldSelf.spec")
    same = " && ".join(f"has(self.spec.inputs[n].{s}) == has(oldSelf.spec.inputs[n].{s})" for s in SOURCES)
    return [
        Rule(
            "",
            f"{FREE} || {units} == {before}",
            f"join.units is fixed for the life of a checkpoint; {AFRESH}",
            ".spec.join",
        ),
        Rule(
            "",
            f"{FREE} || {_same_route()}",
            "rows lie where join.strategy and join.subgroups of the checkpoint have put them, and would not be found elsewhere;"
            f" {AFRESH}",
            ".spec.join",
        ),
        Rule(
            "",
            f"{FREE} || self.spec.inputs.all(n, !(n in oldSelf.spec.inputs) || ({same}))",
            f"an input's source is of another kind than the one that the checkpoint was made with; {AFRESH}",
            ".spec.inputs",
        ),
    ]


def _same_route() -> str:
    """As far as can be told without the SQL: subgroups, or strategies multiway and binary, mean that there is a key.

    From auto to biclique, or back, is followed only where there is none; the driver knows, and refuses it.
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
    """One for each unit at most, and if none are named."""
    units, named = UNITS.replace("self", spec), f"{spec}.?join.subgroups"
    return f"({named}.orValue({units}) < {units} ? {named}.orValue({units}) : {units})"


def _mounted(path: str, also: str = "") -> str:
    """A path on a volume; relative ones are judged by the operator."""
    root = "(v.mountPath.endsWith('/') ? v.mountPath : v.mountPath + '/')"
    return f"!{path}.startsWith('/') || (has(self.volumes) && self.volumes.exists(v, ({path} + '/').startsWith({root}){also}))"


def _apart(left: str, right: str) -> str:
    """Neither folder lies in the other."""
    return f"!(({left} + '/').startsWith({right} + '/') || ({right} + '/').startsWith({left} + '/'))"
