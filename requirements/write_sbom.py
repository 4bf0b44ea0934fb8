"""Writes what a wheel of tidewheel is made of and needs (SBOM, CycloneDX 1.5), from the locks.

Python packages are those of `requirements/runtime.txt`, with the hash of each file that may be
installed and, where they are installed here, their licences. If the web page is built into the
wheel, the packages of `web/package-lock.json` that are not for development only are in it, too.

The same locks give the same document: `python requirements/write_sbom.py FILE`.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tomllib
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "runtime.txt"
PAGE = ROOT / "src" / "tidewheel" / "server" / "built_page" / "index.html"
NPM_LOCK = ROOT / "web" / "package-lock.json"
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
Document = dict[str, Any]


def read_lock(text: str) -> dict[str, Document]:
    """Returns the packages of a lock that pip-compile wrote, by name: version, hashes, and the
    packages that need each."""
    found: dict[str, Document] = {}
    current: Document = {}
    for line in text.splitlines():
        if pinned := PINNED.match(line):
            current = {"version": pinned["version"], "hashes": [], "needed_by": []}
            found[pinned["name"]] = current
        elif line.startswith("    #"):
            said = line.strip("# ").removeprefix("via").strip()
            if said and not said.startswith(("-c", "-r")):
                current["needed_by"].append(said.partition(" ")[0])
        current.get("hashes", []).extend(HASH.findall(line))
    return found


def python_components() -> list[Document]:
    """Returns the packages that pip installs beside tidewheel."""
    return [
        {
            "type": "library",
            "bom-ref": _python_ref(name, one["version"]),
            "name": name,
            "version": one["version"],
            "purl": _python_ref(name, one["version"]),
            "hashes": [{"alg": "SHA-256", "content": each} for each in one["hashes"]],
            **_licences(name),
        }
        for name, one in sorted(read_lock(LOCK.read_text()).items())
    ]


def npm_components() -> list[Document]:
    """Returns the packages that are built into the web page."""
    components = {}
    for path, one in json.loads(NPM_LOCK.read_text())["packages"].items():
        name = path.rpartition("node_modules/")[2]
        if not name or one.get("dev") or one.get("optional") or "integrity" not in one:
            continue
        kind, _, digest = one["integrity"].partition("-")
        reference = f"pkg:npm/{name.replace('@', '%40')}@{one['version']}"
        components[reference] = {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": one["version"],
            "purl": reference,
            "hashes": [
                {
                    "alg": kind.upper().replace("SHA", "SHA-"),
                    "content": base64.b64decode(digest).hex(),
                }
            ],
            **({"licenses": [{"expression": one["license"]}]} if one.get("license") else {}),
        }
    return [components[reference] for reference in sorted(components)]


def document(*, with_page: bool) -> Document:
    """Returns the whole document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = _python_ref(project["name"], project["version"])
    locked = read_lock(LOCK.read_text())
    references = {name: _python_ref(name, one["version"]) for name, one in locked.items()}
    references[project["name"]] = own
    needs: dict[str, set[str]] = {reference: set() for reference in references.values()}
    for name, one in locked.items():
        for parent in one["needed_by"]:
            needs[references[parent]].add(references[name])
    page = npm_components() if with_page else []
    needs[own] |= {one["bom-ref"] for one in page}
    told: Document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": python_components() + page,
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(needs[reference])}
            for reference in sorted(needs)
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(told, sort_keys=True))
    return {"serialNumber": f"urn:uuid:{number}"} | told


def _python_ref(name: str, version: str) -> str:
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version.replace('!', '%21')}"


def _licences(name: str) -> Document:
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return {}
    if expression := told.get("License-Expression"):
        return {"licenses": [{"expression": expression}]}
    classes = [one for one in told.get_all("Classifier") or () if one.startswith("License ::")]
    names = [one.rpartition(":: ")[2] for one in classes]
    text = (told.get("License") or "").strip()
    if not names and text and "\n" not in text:
        names = [text]
    return {"licenses": [{"license": {"name": one}} for one in names]} if names else {}


if __name__ == "__main__":
    [path] = sys.argv[1:]
    text = json.dumps(document(with_page=PAGE.exists()), indent=2)
    Path(path).write_text(text + "\n", encoding="utf-8")
