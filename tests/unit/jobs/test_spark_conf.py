"""The confs of a cluster session, as plain data."""

import re
from pathlib import Path

import pytest

from jobs.spark_conf import ClusterContext, Pod, confs, initial_executors, memory, slots
from joinlib.errors import SpecError
from joinlib.spec import StreamJoin, parse
from joinlib.spec.model import Executors

MI = 1 << 20
GI = 1 << 30
POD = Pod("late-driver-0", "shop", "10.0.0.7", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9")
PLACE = ClusterContext(
    POD, "streamjoin:1", "/etc/streamjoin/executor.yaml", "/var/streamjoin", "/tmp", "0a1b2c3d", "/rpc/token"
)
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {{name: {name}}}
spec:
  sql: SELECT a.k FROM a JOIN b ON a.k = b.k
  inputs:
    a: {{schema: "k BIGINT", generator: {{rows: 10}}}}
    b: {{schema: "k BIGINT", generator: {{rows: 10}}}}
  output: {{noop: {{}}}}
  join: {{units: 256}}
  checkpoint: {{path: /data/checkpoint}}
  executors: {executors}
"""


def document(executors: str = "{}", name: str = "late") -> StreamJoin:
    return parse(SPEC.format(executors=executors, name=name), "late.yaml", "/")


def executors(memory_bytes: int, cores: int = 1) -> Executors:
    return Executors.model_validate({"memory": f"{memory_bytes // MI}Mi", "cores": cores})


@pytest.mark.parametrize(
    ("whole", "heap"), [(1 * GI, 512), (2 * GI, 512), (4 * GI, 512), (8 * GI, 1024), (64 * GI, 2048)]
)
def test_memory_is_split_without_a_rest(whole: int, heap: int) -> None:
    """The heap is an eighth within bounds; the pod gets exactly what the spec says; state gets what is above the floor."""
    split = memory(executors(whole))
    assert split.heap == heap * MI
    assert split.heap + split.overhead == whole
    assert split.floor + split.state == whole
    assert 0 < split.state < split.overhead


def test_each_core_has_a_worker() -> None:
    """So it costs memory that no state can have."""
    assert memory(executors(8 * GI, cores=4)).state == memory(executors(8 * GI)).state - 3 * 150 * MI


def test_too_little_memory_is_refused_with_what_is_enough() -> None:
    """What the message says is accepted."""
    with pytest.raises(SpecError, match=r"write \d+Mi or more") as error:
        memory(executors(512 * MI, cores=2))
    least = re.search(r"write (\d+)Mi", str(error.value))
    assert least is not None
    assert memory(executors(int(least[1]) * MI, cores=2)).state > 0


def test_executors_reach_the_driver_by_its_address() -> None:
    """Never by 0.0.0.0, and on the ports that the NetworkPolicy lets through."""
    conf = confs(document(), PLACE)
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "10.0.0.7"
    assert (conf["spark.driver.port"], conf["spark.driver.blockManager.port"]) == ("7078", "7079")


def test_executor_pods_come_from_the_template() -> None:
    """It holds volumes and security; nothing of them stands in the confs as well."""
    conf = confs(document(), PLACE)
    assert conf["spark.kubernetes.executor.podTemplateFile"] == PLACE.template
    assert conf["spark.kubernetes.container.image"] == "streamjoin:1"
    assert conf["spark.kubernetes.driver.pod.name"] == POD.name
    assert not [key for key in conf if "volumes" in key]


def test_executors_prove_themselves_by_a_file() -> None:
    """One setting for both sides: with only one of them Spark would not start."""
    conf = {name: value for name, value in confs(document(), PLACE).items() if "authenticate" in name}
    assert conf == {"spark.authenticate.secret.file": "/rpc/token"}


def test_executors_are_as_the_spec_says() -> None:
    """Number, cores and memory; 4 GiB: an eighth is heap."""
    conf = confs(document("{min: 2, max: 8, cores: 2, memory: 4Gi}"), PLACE)
    assert conf["spark.executor.instances"] == "2"
    assert conf["spark.executor.cores"] == conf["spark.kubernetes.executor.request.cores"] == "2"
    assert (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"]) == ("512m", "3584m")
    assert "spark.kubernetes.executor.limit.cores" not in conf
    conf = confs(document("{cores: 2, cpuRequest: 500m, cpuLimit: '3'}"), PLACE)
    asked = "spark.kubernetes.executor.request.cores", "spark.kubernetes.executor.limit.cores"
    assert [conf[name] for name in asked] == ["500m", "3"]


def test_wanted_and_slots() -> None:
    """`instances` goes before `min`; map tasks follow the most that there can be."""
    some = Executors(min=2, max=8, instances=5, cores=2)
    assert (initial_executors(some), slots(some)) == (5, 16)
    assert initial_executors(Executors(min=2, max=8)) == 2


@pytest.mark.parametrize("name", ["late", "a" * 40, "a" * 31 + "-" + "b" * 8])
def test_pod_names_are_names(name: str) -> None:
    """Spark takes prefixes of 47 characters at most, and appends -exec-NUMBER."""
    prefix = confs(document(name=name), PLACE)["spark.kubernetes.executor.podNamePrefix"]
    assert len(prefix) <= 47
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", prefix)
    assert prefix.startswith(name[:31])
    assert prefix.endswith("-exec-0a1b2c3d")


def test_all_confs_are_text() -> None:
    """Spark takes nothing else."""
    conf = confs(document(), PLACE)
    assert all(isinstance(value, str) and value for value in conf.values())


def test_only_the_drivers_choice_is_waited_for() -> None:
    """Spark's own, whoever has sent most, would keep units from executors that have just come."""
    conf = confs(document(), PLACE)
    assert (conf["spark.locality.wait"], conf["spark.shuffle.reduceLocality.enabled"]) == ("10s", "false")


def test_refused_pods_do_not_end_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark's home has our classes; where it has none, Spark's own allocator is used."""
    allocator = "spark.kubernetes.allocation.pods.allocator"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert allocator not in confs(document(), PLACE)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "streamjoin.jar").touch()
    assert confs(document(), PLACE)[allocator] == "dev.streamjoin.PatientAllocator"
