"""What is shipped is pinned by hashes, as it was tested, and listed (S33)."""

import json
import re
import runpy
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SBOM = runpy.run_path(str(ROOT / "requirements" / "write_sbom.py"))
EXTRAS = ("postgres", "gpu")


def locked(name):
    """The packages of a lock: name to version, hashes, and who needs each."""
    return SBOM["read_lock"]((ROOT / "requirements" / name).read_text())


def wanted():
    project = PROJECT["project"]
    extras = [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    return [Requirement(text) for text in (*project["dependencies"], *extras)]


@pytest.mark.parametrize("need", wanted(), ids=str)
def test_the_runtime_lock_has_every_dependency_in_a_version_that_is_wanted(need):
    """Security audit, LOW: only dev.txt had pins and hashes."""
    assert need.specifier.contains(
        locked("runtime.txt")[canonicalize_name(need.name)]["version"]
    )


def test_the_runtime_lock_has_what_its_packages_need():
    names = locked("runtime.txt")
    for name in names:
        for text in metadata.requires(name) or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in names, (name, text)


@pytest.mark.parametrize("lock", ["runtime.txt", "build.txt"])
def test_what_is_shipped_has_hashes_and_the_versions_that_are_tested(lock):
    tested = locked("dev.txt")
    for name, one in locked(lock).items():
        assert one["hashes"], name
        assert one["version"] == tested[name]["version"], name
        assert set(one["hashes"]) <= set(tested[name]["hashes"]), name


def test_what_builds_the_wheel_is_locked():
    for text in PROJECT["build-system"]["requires"]:
        assert canonicalize_name(Requirement(text).name) in locked("build.txt")


def test_the_image_takes_nothing_whose_hash_is_unknown():
    """Security audit, LOW: `pip install` without hashes, on images by tag."""
    text = (ROOT / "deploy" / "compose" / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"\bpip (?:install|wheel)\b[^&\n]*", text)
    assert len(installs) == 2
    for line in installs:
        assert "--require-hashes" in line or ("--no-deps" in line and "--no-index" in line), (
            line
        )
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON_IMAGE}"]
    assert re.findall(r"^COPY (.*)", text, re.MULTILINE) == [
        "requirements.txt tidewheel-*.whl /usr/src/"
    ]


def test_every_image_of_the_deployment_can_be_pinned_by_its_digest():
    document = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yml").read_text())
    for name, service in document["services"].items():
        image = service["image"]
        if image == "tidewheel":  # made once, by those that say how
            assert "PYTHON_IMAGE" in service.get("build", {"args": "PYTHON_IMAGE"})["args"], (
                name
            )
        else:
            assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z]+:[\w.-]+\}", image), image


@pytest.mark.parametrize("with_page", [True, False])
def test_the_list_of_what_is_shipped_is_complete_and_always_the_same(with_page):
    told = SBOM["document"](with_page=with_page)
    assert told == SBOM["document"](with_page=with_page)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.5")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", told["serialNumber"])
    own = told["metadata"]["component"]
    assert (own["name"], own["version"]) == ("tidewheel", PROJECT["project"]["version"])
    python = {
        one["name"]: one["version"]
        for one in told["components"]
        if one["purl"].startswith("pkg:pypi/")
    }
    assert python == {name: one["version"] for name, one in locked("runtime.txt").items()}
    assert (
        any(one["purl"].startswith("pkg:npm/react@") for one in told["components"]) is with_page
    )
    references = [one["bom-ref"] for one in (own, *told["components"])]
    assert len(references) == len(set(references))
    for one in told["dependencies"]:
        assert {one["ref"], *one["dependsOn"]} <= set(references)
    for one in told["components"]:
        assert one["licenses"] and all(each["content"] for each in one["hashes"]), one["name"]
    assert "http" not in json.dumps(told).replace("httptools", "")
