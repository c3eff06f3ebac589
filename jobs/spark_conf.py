"""The Spark settings of a job on Kubernetes. Plain data: nothing is started or read.

    driver pod ── asks the API server for ──► executor pods NAME-exec-RUN-exec-N, from the operator's template
               ◄── dial its IP, ports 7078 and 7079 ──

The template holds volumes, labels and the security context; Spark adds image, resources,
environment and arguments.

The memory M of an executor pod, which is limited to exactly that, is split (MemorySplit) into

    heap       M/8, at least 512 MiB and at most 2 GiB: rows never pass through the JVM, only blocks do
    overhead   the rest: the JVM's own, Python workers, Arrow, mapped state
    floor      heap + 300 MiB + 150 MiB per core: what an executor without state may need (measured: 610 MiB,
               630 MiB with two cores: one Python daemon for source and join, one worker per core)
    state      M - floor: what segments and indexes may take, the base of the memory load
"""

from dataclasses import dataclass

from joinlib.deploy import (
    HEAP_MAX,
    HEAP_MIN,
    HEAP_SHARE,
    JVM,
    MI,
    PORTS,
    WORKER,
    Variable,
    executor_prefix,
)
from joinlib.errors import SpecError
from joinlib.scale import reserve
from joinlib.spark.boot import jar
from joinlib.spec.model import Driver, Executors, StreamJoin

# Small heaps, few threads, little code: the serial collector returns a batch's memory to the system.
EXECUTOR_JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:ReservedCodeCacheSize=64m",
    "-XX:-UsePerfData",
    "-Djdk.lang.Process.launchMechanism=VFORK",
)


@dataclass(frozen=True)
class Pod:
    """The driver's own pod, as the downward API describes it."""

    name: str
    namespace: str
    ip: str
    uid: str


@dataclass(frozen=True)
class ClusterContext:
    """How Spark obtains executors in a cluster."""

    pod: Pod
    image: str
    template: str  # file with the pod template of executors
    local: str  # folder of the executors' indexes
    temporary: str  # folder for the driver's temporary files
    run: str  # id of the run: eight characters, unique among the driver's runs
    secret: str  # file with the secret of Spark's RPC, at the same path in each pod
    cpu: str | None = None  # CPU request of an executor; None means its number of cores


@dataclass(frozen=True)
class MemorySplit:
    """How an executor's memory is split, in bytes."""

    heap: int
    overhead: int
    floor: int

    @property
    def state(self) -> int:
        """Bytes that segments and indexes may take."""
        return self.heap + self.overhead - self.floor


def memory(executors: Executors) -> MemorySplit:
    """Return the split of one executor's memory.

    Raises:
        SpecError: The memory does not suffice even without state.
    """
    whole = executors.memory_bytes
    heap = min(max(whole // HEAP_SHARE, HEAP_MIN), HEAP_MAX) // MI * MI
    floor = heap + JVM + executors.cores * WORKER
    if whole <= floor:
        least = (floor + 2 * WORKER) // MI
        raise SpecError(
            f"executors.memory: {whole // MI}Mi is less than an executor needs without any state; write"
            f" {least}Mi or more"
        )
    return MemorySplit(heap, (whole - heap) // MI * MI, floor)


def executors_of(document: StreamJoin) -> Executors:
    """Return the executors of a spec, or the defaults if it has none."""
    return document.spec.executors or Executors()


def slots(executors: Executors) -> int:
    """Return the number of tasks that can run at once when all executors exist."""
    return executors.max * executors.cores


def initial_executors(executors: Executors) -> int:
    """Return the number of executors to start with."""
    return executors.instances or executors.min


def asked(executors: Executors, wanted: int) -> int:
    """Return the number of executors to ask Spark for, spare ones included."""
    return reserve.asked(wanted, executors.spare, executors.max)


def confs(document: StreamJoin, place: ClusterContext) -> dict[str, str]:
    """Return all settings that a cluster session needs beside `session.settings`."""
    executors = executors_of(document)
    return {
        "spark.app.name": document.metadata.name,
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.submit.deployMode": "client",
        # Without a file Spark makes a secret and puts it into the environment of every executor's pod.
        "spark.authenticate.secret.file": place.secret,
        **_driver(document.spec.driver, place),
        **_pods(document.metadata.name, executors, place),
        **_executor(executors, place),
        **_scheduling(executors),
        **jar.warming(),
        **jar.patience(),
    }


def _driver(driver: Driver, place: ClusterContext) -> dict[str, str]:
    return {
        "spark.driver.host": place.pod.ip,
        "spark.driver.bindAddress": place.pod.ip,  # executors dial the address that it binds: never 0.0.0.0
        "spark.driver.port": str(PORTS["rpc"]),
        "spark.driver.blockManager.port": str(PORTS["blocks"]),
        # The other half is for Python and for the processes of the source's driver part.
        "spark.driver.memory": f"{driver.memory_bytes // 2 // MI}m",
        # Not spark.local.dir: executors would get it as a mount that hides the template's mount there.
        "spark.sql.warehouse.dir": f"{place.temporary}/warehouse",
    }


def _pods(name: str, executors: Executors, place: ClusterContext) -> dict[str, str]:
    kubernetes = "spark.kubernetes."
    return {
        kubernetes + "namespace": place.pod.namespace,
        kubernetes + "driver.pod.name": place.pod.name,  # it owns the executors: they are deleted with it
        kubernetes + "container.image": place.image,
        kubernetes + "executor.podNamePrefix": executor_prefix(name, place.run),
        kubernetes + "executor.podTemplateFile": place.template,
        kubernetes + "executor.disableConfigMap": "true",
        kubernetes + "driver.service.deleteOnTermination": "false",
        # The driver makes no claims, and needs no right to delete any.
        kubernetes + "driver.ownPersistentVolumeClaim": "false",
        kubernetes + "executor.request.cores": executors.cpu_request or place.cpu or str(executors.cores),
        **({} if executors.cpu_limit is None else {kubernetes + "executor.limit.cores": executors.cpu_limit}),
    }


def _executor(executors: Executors, place: ClusterContext) -> dict[str, str]:
    split = memory(executors)
    return {
        "spark.executor.instances": str(initial_executors(executors)),
        "spark.executor.cores": str(executors.cores),
        "spark.executor.memory": f"{split.heap // MI}m",
        "spark.executor.memoryOverhead": f"{split.overhead // MI}m",
        # The folder of the indexes is the only one that is certainly writable.
        "spark.executor.extraJavaOptions": " ".join([*EXECUTOR_JAVA, f"-Djava.io.tmpdir={place.local}"]),
        "spark.executorEnv.TMPDIR": place.local,
        f"spark.executorEnv.{Variable.LOCAL_DIR}": place.local,
        "spark.executorEnv.MALLOC_ARENA_MAX": "2",  # otherwise every JVM thread keeps its own malloc arena
        # By default the driver gives up when too many executors have died since it started. A job runs for
        # months: count only those of the last hour.
        "spark.executor.failuresValidityInterval": "1h",
        "spark.executor.maxNumFailures": str(max(10, 2 * executors.max)),
    }


def _scheduling(executors: Executors) -> dict[str, str]:
    return {
        # A partition's task waits for a core of its preferred executor, which has the indexes. The wait is
        # limited, so that a stuck executor does not hold up a batch; one that is gone is not waited for.
        "spark.locality.wait": "10s",
        # Without a preferred executor a task goes wherever a core is free: waiting for the executor that sent
        # most blocks would only lose time.
        "spark.shuffle.reduceLocality.enabled": "false",
        # The first batch places the units: it waits for all executors, half a minute at most.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "30s",
        # A leaving executor hands over its shuffle files, so that no task fails.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        # Killed workers do not end the query; an error in the data, which every attempt meets, soon does.
        "spark.task.maxFailures": "4",
    }
