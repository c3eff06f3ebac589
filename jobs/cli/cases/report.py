"""What became of the cases of a spec: for people, and as JUnit XML for programs."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.cli.cases.play import check, failure
from joinlib.errors import SpecError
from joinlib.files import whole
from joinlib.spec.cases import CaseFile
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint

Clock = Callable[[], float]


@dataclass(frozen=True)
class Verdict:
    """What became of a case. `failure`: in what it differs; empty: in nothing."""

    name: str
    seconds: float
    failure: str

    @property
    def line(self) -> str:
        """The case in a line."""
        return f"{'FAILED' if self.failure else 'passed'}  {self.name}  ({self.seconds:.2f} s)"


def judged(document: StreamJoin, file: CaseFile, chosen: Sequence[str], clock: Clock) -> Iterator[Verdict]:
    """Run the cases of a spec, those chosen or all, and yield what became of each; none, if one has a mistake.

    `clock`: seconds.

    Raises:
        SpecError: A case has a mistake, or is not there.
    """
    numbers = _numbers(file, chosen)
    check(document, file, numbers)
    for number in numbers:
        began = clock()
        found = failure(document, file, number)
        yield Verdict(file.cases[number].name, clock() - began, found)


def _numbers(file: CaseFile, chosen: Sequence[str]) -> list[int]:
    names = [case.name for case in file.cases]
    for name in chosen:
        if name not in names:
            raise SpecError(f"--case: {file.path} has no case {name!r}; {hint(name, names, 'cases')}")
    return [number for number, name in enumerate(names) if not chosen or name in chosen]


def junit(path: Path, suite: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as JUnit XML, as the servers of CI read it."""
    failed = sum(bool(v.failure) for v in verdicts)
    counts = {"tests": str(len(verdicts)), "failures": str(failed), "errors": "0"}
    took = {"time": f"{sum(v.seconds for v in verdicts):.3f}"}
    root = ET.Element("testsuites", counts | took)
    made = ET.SubElement(root, "testsuite", {"name": suite} | counts | took)
    for verdict in verdicts:
        named = {"classname": suite, "name": verdict.name, "time": f"{verdict.seconds:.3f}"}
        case = ET.SubElement(made, "testcase", named)
        if verdict.failure:
            first, _, rest = verdict.failure.partition("\n")
            ET.SubElement(case, "failure", {"message": first}).text = rest or first
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as aside:
        ET.ElementTree(root).write(aside, encoding="utf-8", xml_declaration=True)
