"""What a text that does not match a pattern of the models is, and what to write: "should match '^([1-9]…" helps nobody."""

from joinlib.spec.base import QUANTITY, VARIABLE
from joinlib.spec.duration import PATTERN as DURATION
from joinlib.spec.functions import FUNCTION
from joinlib.spec.inputs import SIGN, SLOT
from joinlib.spec.kafka import MESSAGE, SERVERS, TOPIC, URL
from joinlib.spec.model import KEY, LABEL, MOUNT, MOUNTS_TEXT
from joinlib.spec.pods import CPU

PATTERNS = {
    LABEL: "is not a name; write lower-case letters, digits and '-', such as late-orders",
    r"\S": "is empty; write a SELECT",
    DURATION: "is not a duration; write each unit once and the largest first, such as 10s, 500ms or 2h30m",
    QUANTITY: "is not an amount of memory; write 8Gi or 512Mi",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$": (
        "is not a word; write letters, digits, '.', '_' and '-', at most 63"
    ),
    MOUNT: f"could hide files of the image; write {MOUNTS_TEXT}, or a folder below",
    r"^/": "is not an absolute path; write /srv/data, for example",
    r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$": (
        "is not the name of an object; write lower-case letters, digits, '-' and '.'"
    ),
    CPU: "is not an amount of CPU; write 2 or 500m",
    SERVERS: "is not a list of brokers; write HOST:PORT, several with commas between",
    TOPIC: "is not the name of a topic; write letters, digits, '.', '_' and '-', at most 249",
    KEY: "is not an entry of a Secret; write letters, digits, '.', '_' and '-'",
    SIGN: "is not a single character; write one ASCII character, and no line break",
    SLOT: "is not the name of a replication slot; write lower-case letters, digits and '_', at most 63",
    URL: "is not the address of a registry; write https://HOST:PORT, and no user or password in it",
    VARIABLE: "is not the name of an environment variable; write its name, such as SHOP_PASSWORD",
    MESSAGE: "is not the full name of a message type; write it as in the .proto file, such as shop.Order",
    FUNCTION: "is not a function; write MODULE:FUNCTION, such as scoring:score",
    r"^\S+$": "is not an image; write it without spaces, such as registry.example/streamjoin:1",
}


def fix_of(pattern: str) -> str:
    """Return what to write where a text does not match a pattern."""
    return PATTERNS[pattern].partition("; ")[2]
