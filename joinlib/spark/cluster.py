"""What must Spark be told to run a job on Kubernetes? Plain data: nothing is started or read.

    driver pod ── asks the API server for ──► executor pods NAME-exec-RUN-exec-N, made from the operator's template
               ◄── dial its IP, ports 7078 and 7079 ──

The template holds volumes, labels and the security context; Spark adds image, resources, environment and arguments.

Memory M of an executor pod, which is limited to exactly that:

    heap       M/8, at least 512 MiB and at most 2 GiB: rows never pass through the JVM, only blocks do
    overhead   the rest: the JVM's own, Python workers, Arrow, mapped state
    floor      heap + 300 MiB + 150 MiB a core: what an executor without state may come to need (610 MiB were seen, 630 with
               two cores: one Python daemon for source and join, one worker a core)
    state      M - floor: what segments and indexes may take, the base of the memory load
"""

from dataclasses import dataclass

from joinlib.errors import SpecError
from joinlib.spark import jar
from joinlib.spec.model import Driver, Executors, StreamJoin

RPC_PORT, BLOCKS_PORT = 7078, 7079

# Small heaps, few threads, little code: the serial collector gives back what a batch took.
EXECUTOR_JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:ReservedCodeCacheSize=64m",
    "-XX:-UsePerfData",
    "-Djdk.lang.Process.launchMechanism=VFORK",
)

_MI = 1 << 20
_HEAP_LOW, _HEAP_HIGH = 512 * _MI, 2048 * _MI  # Spark refuses less than 450 MiB
_JVM, _WORKER = 300 * _MI, 150 * _MI  # beside the heap; of a core
_PREFIX = (
    32  # characters of the job's name: Spark takes prefixes of 47 at most, "-exec-" and 8 of the run are ours
)


@dataclass(frozen=True)
class Pod:
    """The driver's own pod, as the downward API tells it."""

    name: str
    namespace: str
    ip: str
    uid: str


@dataclass(frozen=True)
class Place:
    """Where executors come from."""

    pod: Pod
    image: str
    template: str  # file with the pod template of executors
    local: str  # folder of the executors' indexes
    temporary: str  # folder for the driver's own files that last no longer than it does
    run: str  # eight characters that no other run of the driver has
    secret: str  # file with what driver and executors prove themselves by, at the same place in each pod
    cpu: str | None = None  # CPU that an executor asks for; None: its cores


@dataclass(frozen=True)
class Memory:
    """How an executor's memory is split, in bytes."""

    heap: int
    overhead: int
    floor: int

    @property
    def state(self) -> int:
        """What segments and indexes may take."""
        return self.heap + self.overhead - self.floor


def memory(executors: Executors) -> Memory:
    """The split of one executor's memory."""
    whole = executors.memory_bytes
    heap = min(max(whole // 8, _HEAP_LOW), _HEAP_HIGH) // _MI * _MI
    floor = heap + _JVM + executors.cores * _WORKER
    if whole <= floor:
        least = (floor + 2 * _WORKER) // _MI
        raise SpecError(
            f"executors.memory: {whole // _MI}Mi is less than an executor needs without any state; write {least}Mi or more"
        )
    return Memory(heap, (whole - heap) // _MI * _MI, floor)


def executors_of(document: StreamJoin) -> Executors:
    """The executors of a spec, which may leave them out."""
    return document.spec.executors or Executors()


def slots(executors: Executors) -> int:
    """Tasks that can run at once when all executors are there."""
    return executors.max * executors.cores


def wanted(executors: Executors) -> int:
    """Executors to begin with."""
    return executors.instances or executors.min


def confs(document: StreamJoin, place: Place) -> dict[str, str]:
    """All that a cluster session needs beside `session.settings`."""
    executors = executors_of(document)
    return {
        "spark.app.name": document.metadata.name,
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.submit.deployMode": "client",
        # Without a file Spark makes one of its own, which then stands in the environment of every executor's pod.
        "spark.authenticate.secret.file": place.secret,
        **_driver(document.spec.driver, place),
        **_pods(document.metadata.name, executors, place),
        **_executor(executors, place),
        **_scheduling(executors),
        **jar.warming(),
    }


def _driver(driver: Driver, place: Place) -> dict[str, str]:
    return {
        "spark.driver.host": place.pod.ip,
        "spark.driver.bindAddress": place.pod.ip,  # executors dial what the driver binds: never 0.0.0.0
        "spark.driver.port": str(RPC_PORT),
        "spark.driver.blockManager.port": str(BLOCKS_PORT),
        # The other half is for Python and for the processes of the source's driver part.
        "spark.driver.memory": f"{driver.memory_bytes // 2 // _MI}m",
        # Not spark.local.dir: executors would get it as a mount, over what the template mounts there.
        "spark.sql.warehouse.dir": f"{place.temporary}/warehouse",
    }


def _pods(name: str, executors: Executors, place: Place) -> dict[str, str]:
    kubernetes = "spark.kubernetes."
    return {
        kubernetes + "namespace": place.pod.namespace,
        kubernetes + "driver.pod.name": place.pod.name,  # it owns the executors: they go when it goes
        kubernetes + "container.image": place.image,
        # Numbers begin at 1 in every run, and a container that was restarted is one more run in the same pod.
        kubernetes + "executor.podNamePrefix": f"{name[:_PREFIX].rstrip('-')}-exec-{place.run}",
        kubernetes + "executor.podTemplateFile": place.template,
        kubernetes + "executor.disableConfigMap": "true",
        kubernetes + "driver.service.deleteOnTermination": "false",
        kubernetes
        + "driver.ownPersistentVolumeClaim": "false",  # it makes none, and needs no right to delete any
        kubernetes + "executor.request.cores": executors.cpu_request or place.cpu or str(executors.cores),
        **({} if executors.cpu_limit is None else {kubernetes + "executor.limit.cores": executors.cpu_limit}),
    }


def _executor(executors: Executors, place: Place) -> dict[str, str]:
    split = memory(executors)
    return {
        "spark.executor.instances": str(wanted(executors)),
        "spark.executor.cores": str(executors.cores),
        "spark.executor.memory": f"{split.heap // _MI}m",
        "spark.executor.memoryOverhead": f"{split.overhead // _MI}m",
        # The one folder that is surely writable is that of the indexes.
        "spark.executor.extraJavaOptions": " ".join([*EXECUTOR_JAVA, f"-Djava.io.tmpdir={place.local}"]),
        "spark.executorEnv.TMPDIR": place.local,
        "spark.executorEnv.STREAMJOIN_LOCAL_DIR": place.local,
        "spark.executorEnv.MALLOC_ARENA_MAX": "2",  # else every thread of the JVM keeps a heap of its own
        # The driver gives up when too many executors have died, ever. A job runs for months: count an hour's.
        "spark.executor.failuresValidityInterval": "1h",
        "spark.executor.maxNumFailures": str(max(10, 2 * executors.max)),
    }


def _scheduling(executors: Executors) -> dict[str, str]:
    return {
        # While all cores of the executor that the driver has chosen for a partition are busy, its task waits: the indexes are
        # there. Not for ever: one that is stuck must not hold up a batch. One that is gone is not waited for.
        "spark.locality.wait": "10s",
        # Where none is chosen a task goes where there is room: to wait for whoever sent most blocks would only lose time.
        "spark.shuffle.reduceLocality.enabled": "false",
        # The first batch places the units: it waits for all executors, half a minute at most.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "30s",
        # A leaver hands on what the batch has shuffled so far: no task fails.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        # Killed workers do not end the query; a mistake in the data, which every attempt meets, soon does.
        "spark.task.maxFailures": "4",
    }
