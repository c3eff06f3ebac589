"""The list of what is in an image: all of it, once, as CycloneDX has it."""

import hashlib
import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

SBOM = Path(__file__).parents[2] / "docker" / "sbom"


def test_everything_is_listed_once(tmp_path: Path) -> None:
    """What is installed here is what an image of this machine would say: packages of Debian and of Python, and jars."""
    (tmp_path / "guava-33.4.0-jre.jar").write_bytes(b"a jar")
    (tmp_path / "streamjoin.jar").write_bytes(b"our own, made in the image")
    found = subprocess.run([sys.executable, SBOM, tmp_path], check=True, capture_output=True, text=True)
    document = json.loads(found.stdout)
    refs = [one["bom-ref"] for one in document["components"]]
    names = {one["purl"].rpartition("@")[0] for one in document["components"]}
    jar = next(one for one in document["components"] if one["name"] == "guava")

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert len(refs) == len(set(refs)) and refs == sorted(refs)
    assert {f"pkg:pypi/{d.name.lower().replace('_', '-')}" for d in metadata.distributions()} <= names
    assert "pkg:deb/debian/bash" in names
    assert (jar["version"], jar["hashes"][0]["content"]) == (
        "33.4.0-jre",
        hashlib.sha256(b"a jar").hexdigest(),
    )
