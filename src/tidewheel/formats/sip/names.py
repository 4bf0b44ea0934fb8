"""Checks the names of workflows, stages, versions and objects, and reads those of files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidewheel.formats.flow_cylc.names import task_name_problem
from tidewheel.formats.sip.limits import NAME_LENGTH_MAX
from tidewheel.formats.sip.text_files import FileName

# A node of the graph that stands for a buffer object; no stage may be called so.
OBJECT_PREFIX = "object@"

_WORKFLOW = re.compile(r"\w[\w.+@%-]*", re.ASCII)
_VERSION = re.compile(r"\w[\w.+-]*", re.ASCII)
_VERSION_AT_END = re.compile(r"(?P<name>.+?)[-_]v?(?P<version>\d+\.\d[\w.+-]*)", re.ASCII)
JINJA_NAMES = frozenset(
    {"range", "dict", "lipsum", "cycler", "joiner", "namespace", "loop", "caller", "varargs"}
)
# What every template knows, whatever parameters are called.
FIXED_NAMES = frozenset({"stage", "stages", "parameters", "args"})


@dataclass(frozen=True, slots=True)
class NameAndVersion:
    """Holds what the name of a file tells; an empty version is none."""

    stem: str
    name: str
    version: str = ""


def name_and_version(file: FileName) -> NameAndVersion:
    """`vis-ingest-1.0.0.yml` is vis-ingest, 1.0.0; a version has a dot."""
    found = _VERSION_AT_END.fullmatch(file.stem)
    if found is None:
        return NameAndVersion(file.stem, file.stem)
    return NameAndVersion(file.stem, found["name"], found["version"])


def workflow_id_problem(name: str) -> str:
    if not _WORKFLOW.fullmatch(name):
        return "names have letters, digits and _ . + @ % -, and begin with a letter or digit"
    return _length_problem(name)


def stage_id_problem(name: str) -> str:
    if name in FIXED_NAMES:
        return f"templates know something else as {name!r}; choose another"
    if name.startswith(OBJECT_PREFIX):
        return f"names that begin with {OBJECT_PREFIX} stand for buffer objects"
    if not name.isascii():
        return "names are written in ASCII letters: they become names of folders and services"
    return task_name_problem(name) or _length_problem(name)


def version_problem(version: str) -> str:
    if not _VERSION.fullmatch(version) or ".." in version:
        return "versions have letters, digits and . _ + -, such as 1.0.0: they name a folder"
    return _length_problem(version)


def object_name_problem(name: str) -> str:
    if not name.strip() or not name.isprintable():
        return "names of objects have printable characters"
    return _length_problem(name)


def object_node(name: str) -> str:
    """Returns the node of a buffer object: characters that no name may have become %XX."""
    safe = re.sub(
        r"[^A-Za-z0-9_.+-]|\.",
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()),
        name,
    )
    return OBJECT_PREFIX + safe


def _length_problem(name: str) -> str:
    return f"at most {NAME_LENGTH_MAX} characters" if len(name) > NAME_LENGTH_MAX else ""
