"""The contract between the operator and a job's driver: names, ports, folders, variables and memory.

    operator    makes a job's objects by these names, and sets the driver's variables
    driver      finds its Lease and its executors by them, and reads those variables
    spec        limits what a user may write so that everything above fits

Each fact is written here and nowhere else in Python. This module imports nothing of the project, so that
all three can import it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The kind.
GROUP, VERSION, KIND, PLURAL = "streamjoin.dev", "v1alpha1", "StreamJoin", "streamjoins"
API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True)
class Resource:
    """A kind of the Kubernetes API: its group, version and plural."""

    group: str
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of the group and version."""
        return f"/{self._prefix}/{self.api_version}"

    @property
    def known(self) -> dict[str, Any]:
        """The arguments of the official client's `Resource`: what discovery would find."""
        return {
            "prefix": self._prefix,
            "group": self.group,
            "api_version": self.version,
            "kind": self.kind,
            "name": self.plural,
            "namespaced": True,
        }

    @property
    def _prefix(self) -> str:
        return "apis" if self.group else "api"


# Kinds that operator and driver both ask for.
POD = Resource("", "v1", "Pod", "pods")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")

# Labels. Of an object of a job: name, instance, component. Of what the operator makes: managed-by.
LABEL = "app.kubernetes.io/"
INSTANCE = LABEL + "instance"
COMPONENT = LABEL + "component"
PRODUCT = "streamjoin"  # value of the label name
MANAGER = "streamjoin-operator"  # value of the label managed-by, and field manager of server-side apply
DRIVER, EXECUTOR = "driver", "executor"  # values of the label component

# Lengths. A label holds 63 characters: NAME-driver, and the 11 that a StatefulSet adds to it, must fit.
NAME_MAX = 40
# Spark takes prefixes of 47 characters for executors: "-exec-" and the eight characters of a run are in it.
PREFIX_MAX = 32

# Ports of a driver's pod, by the names that its Service gives them.
PORTS = {"rpc": 7078, "blocks": 7079, "http": 8080}

# Folders and files of a pod. The image is built for them (Dockerfile, docker/entrypoint).
USER = 185
ENTRY = "/opt/streamjoin/entrypoint"
LOCAL, HOME, TEMPORARY = "/var/streamjoin", "/home/streamjoin", "/tmp"  # noqa: S108 - the pod's own
SPEC_FOLDER, TOKEN_FOLDER = "/etc/streamjoin", "/etc/streamjoin-token"
RPC_FOLDER, TLS_FOLDER = "/etc/streamjoin-rpc", "/etc/streamjoin-tls"
SPEC_FILE, EXECUTOR_FILE, TOKEN_FILE = "spec.yaml", "executor.yaml", "token"
TERMINATION_LOG = "/dev/termination-log"
ASK = ("python", "-m", "jobs.ask")  # and a question, in the driver's container: kubectl's plugin has it run
GRACE_S = 90  # between SIGTERM and SIGKILL

# Folders under which a spec may mount volumes: the image has nothing in them.
MOUNTS = ("data", "media", "mnt", "secrets", "srv", "state", "volumes")

# Prefixes of variables that programs in the pods read: a spec may not set them.
RESERVED = ("POD", "STREAMJOIN", "SPARK", "PYSPARK", "KUBERNETES", "HADOOP", "PYTHON", "JAVA", "JDK", "LD")

# Variables by which a spec says where a driver tells what it reads and writes, and what its batches took.
LINEAGE_URL = "OPENLINEAGE_URL"
LINEAGE_HEADERS = "OPENLINEAGE_HEADERS"  # a secret
LINEAGE_AUTHORITY = "OPENLINEAGE_CERTIFICATE"
LINEAGE_CERTIFICATE = "OPENLINEAGE_CLIENT_CERTIFICATE"
LINEAGE_KEY = "OPENLINEAGE_CLIENT_KEY"
TRACES_URL = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # a secret
TRACES_AUTHORITY = "OTEL_EXPORTER_OTLP_CERTIFICATE"
TRACES_CERTIFICATE = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"
TRACES_KEY = "OTEL_EXPORTER_OTLP_CLIENT_KEY"
TOLD = (
    LINEAGE_HEADERS,
    LINEAGE_AUTHORITY,
    LINEAGE_CERTIFICATE,
    TRACES_URL,
    TRACES_HEADERS,
    TRACES_AUTHORITY,
    TRACES_CERTIFICATE,
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
)  # beside variables of logins, the only ones that a spec may set: they change nothing but what is told


class Variable:
    """Environment variables of the driver."""

    # From the downward API. POD_NAME says that the driver runs in a cluster.
    POD_NAME = "POD_NAME"
    POD_NAMESPACE = "POD_NAMESPACE"
    POD_IP = "POD_IP"
    POD_UID = "POD_UID"
    # Always set in a cluster.
    IMAGE = "STREAMJOIN_IMAGE"  # of the executors
    EXECUTOR_TEMPLATE = "STREAMJOIN_EXECUTOR_TEMPLATE"  # file
    RPC_FILE = "STREAMJOIN_RPC_FILE"  # the secret that driver and executors share
    TOKEN_FILE = "STREAMJOIN_TOKEN_FILE"  # noqa: S105 - a file: the secret that operator and driver share
    LOCAL_DIR = "STREAMJOIN_LOCAL_DIR"  # of the executors' indexes
    CONFIG_HASH = "STREAMJOIN_CONFIG_HASH"
    UID = "STREAMJOIN_UID"  # of the StreamJoin
    # Optional.
    TLS_FOLDER = "STREAMJOIN_TLS_FOLDER"  # HTTP is in clear without it
    CPU_REQUEST = "STREAMJOIN_CPU_REQUEST"  # of an executor; its cores without it
    PORT = "STREAMJOIN_PORT"
    TERMINATION_LOG = "STREAMJOIN_TERMINATION_LOG"


# Memory of an executor's pod, in bytes. An eighth of it is the JVM's heap, within bounds: rows never pass
# through the JVM. Beside the heap an executor needs JVM bytes for the JVM itself, and WORKER bytes for the
# Python worker of each core (610 MiB were measured without state, 630 MiB with two cores).
MI = 1 << 20
HEAP_SHARE, HEAP_MIN, HEAP_MAX = 8, 512 * MI, 2048 * MI  # Spark refuses less than 450 MiB
JVM, WORKER = 300 * MI, 150 * MI


def match(name: str, component: str | None = None) -> dict[str, str]:
    """Return the labels that select the pods of a job, or those of one of its components."""
    labels = {LABEL + "name": PRODUCT, INSTANCE: name}
    return labels | ({COMPONENT: component} if component else {})


def selector(labels: Mapping[str, str]) -> str:
    """Return labels in the form that the API server takes in a query."""
    return ",".join(f"{name}={value}" for name, value in labels.items())


def driver(name: str) -> str:
    """Return the name of a driver's StatefulSet, Service, Lease, ServiceAccount, Role and RoleBinding."""
    return f"{name}-driver"


def driver_pod(name: str) -> str:
    """Return the name of a driver's pod."""
    return f"{driver(name)}-0"


def executor_prefix(name: str, run: str) -> str:
    """Return the prefix of the names of a run's executors.

    Executor ids restart at 1 in every run, so the prefix includes the run's id.
    """
    return f"{name[:PREFIX_MAX].rstrip('-')}-exec-{run}"
