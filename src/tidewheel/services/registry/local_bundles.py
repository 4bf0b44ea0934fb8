"""Files and folders of this machine that are to be registered, as bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.operator.definition import PYTHON_SUFFIX, StoredFile
from tidewheel.core.operator.registry import Bundle
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.formats.sip.bundle import find_definitions, read_folder
from tidewheel.formats.sip.definition import definitions_among
from tidewheel.services.definitions.snapshot import files_of


def read_bundles(
    paths: Sequence[Path], findings: Findings, *, name: str = "", version: str = ""
) -> list[Bundle]:
    """Returns a bundle for each definition that is named, or lies in a folder that is."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    several = len({*folders}) > 1
    found: list[Bundle] = []
    for path, folder in zip(paths, folders, strict=True):
        called = str(folder) if several else ""
        own = Findings()
        bundles = _bundles_at(path, own, name=name, version=version)
        found += [replace(one, folder=called) for one in bundles]
        for one in own:
            findings.add(one.inside(called))
    if (name or version) and len(found) > 1:
        findings.error(
            "one-name",
            f"a name and a version are for one definition, and these are {len(found)}",
            "register them one by one, or without --name and --version",
        )
    return found


def _bundles_at(path: Path, findings: Findings, *, name: str, version: str) -> list[Bundle]:
    if path.suffix == PYTHON_SUFFIX and path.is_file():
        return _python(path, findings, name, version)
    if path.name == FLOW_FILE or (path / FLOW_FILE).is_file():
        folder = path if path.is_dir() else path.parent
        return _flow(folder, findings, name or folder.resolve().name, version)
    read = [read_folder(one, findings) for one in find_definitions(path, findings)]
    sources = [source for source in read if source is not None]
    return [
        Bundle(
            files=source.files,
            executable=source.executable,
            folders=source.folders,
            file=source.file,
            name=name,
            version=version,
        )
        for source in definitions_among(sources)
    ]


def _flow(folder: Path, findings: Findings, name: str, version: str) -> list[Bundle]:
    files = _all_files(folder, findings)
    return [_bundle(files, name=name, version=version, file=FLOW_FILE)]


def _python(path: Path, findings: Findings, name: str, version: str) -> list[Bundle]:
    # A folder of programs: only the file and modules beside it belong to it.
    files = _all_files(path.parent, findings, PYTHON_SUFFIX)
    return [_bundle(files, name=name, version=version, file=path.name)]


def _all_files(folder: Path, findings: Findings, suffix: str = "") -> Sequence[StoredFile]:
    """Returns the files below a folder whose names end so."""
    files, too_large = files_of(folder)
    for one in [path for path in too_large if path.endswith(suffix)]:
        findings.error(
            "file-too-large",
            f"{one} is too large to be kept with the workflow",
            "keep data elsewhere; a file may have 1 MiB, a folder 32 MiB and 10000 files",
            Position(one),
        )
    return [one for one in files if one.path.endswith(suffix)]


def _bundle(files: Sequence[StoredFile], *, name: str, version: str, file: str) -> Bundle:
    return Bundle(
        files={one.path: one.content for one in files},
        executable=frozenset(one.path for one in files if one.executable),
        name=name,
        version=version,
        file=file,
    )
