"""Definitions and stage files that come as one bundle of paths and contents, from anywhere.

Nothing is written here, so that a path can lead nowhere; what could lead out of a folder later
is refused all the same. (RELIABILITY S13)
"""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.definition_text import first_look
from tidewheel.formats.sip.limits import (
    FOLDER_DEPTH_MAX,
    NAME_LENGTH_MAX,
    SOURCE_BYTES_MAX,
    STAGE_FILE_BYTES_MAX,
    STAGE_FILES_MAX,
)
from tidewheel.formats.sip.sip_source import SipSource, folders_for
from tidewheel.formats.sip.text_files import BYTES_MAX, SUFFIXES, file_name

_DEPTH_MAX = FOLDER_DEPTH_MAX + len(("stages", "id", "version"))


def sources_in(
    files: Mapping[str, bytes], findings: Findings, executable: frozenset[str] = frozenset()
) -> list[SipSource]:
    """Each definition of a bundle with the files of its stages; none after an error."""
    _check_size(files, findings)
    for path in files:
        if problem := path_problem(path):
            findings.error("bad-path", f"{path[:100]!r} cannot be stored: {problem}", _PATHS)
    if findings.has_errors:
        return []
    definitions = [path for path in sorted(files) if is_definition(path)]
    if not definitions:
        findings.error(
            "no-definitions",
            "there is no definition",
            f"put a file that ends in {', '.join(SUFFIXES)} (or in one of them and .j2) beside "
            "the folder stages",
        )
    everything = SipSource(file="", files=files)
    return [_source(one, everything, executable) for one in definitions]


_PATHS = "paths are relative, as in stages/<id>/<version>/docker_compose.yaml"


def is_definition(path: str) -> bool:
    """A YAML or JSON file that lies in no folder."""
    return "/" not in path and file_name(path).is_known and not path.startswith(".")


def path_problem(path: str) -> str:
    """Why a file cannot have this path; empty if it can."""
    parts = path.split("/")
    if not path or not path.isprintable() or "\\" in path:
        return "it has characters that are not accepted"
    if path.startswith("/"):
        return "it is absolute"
    if any(part in ("", ".", "..") for part in parts):
        return "it leads elsewhere"
    if len(parts) > _DEPTH_MAX or any(len(part) > NAME_LENGTH_MAX for part in parts):
        return "it is too long"
    return ""


def _source(file: str, everything: SipSource, executable: frozenset[str]) -> SipSource:
    wanted = [
        f"{folder}/"
        for stage, version in first_look(file, everything.files[file])
        for folder in folders_for(stage, version)
    ]
    leads = tuple(wanted)
    kept = {
        path: content
        for path, content in everything.files.items()
        if path == file or path.startswith(leads)
    }
    return SipSource(
        file=file,
        files=kept,
        executable=executable & kept.keys(),
        folders=everything.folders,
    )


def _check_size(files: Mapping[str, bytes], findings: Findings) -> None:
    if len(files) > STAGE_FILES_MAX:
        findings.error(
            "too-many-files",
            f"the bundle has {len(files)} files; at most {STAGE_FILES_MAX} are accepted",
            "leave out what the stages do not need",
        )
        return
    total = sum(map(len, files.values()))
    if total > SOURCE_BYTES_MAX:
        findings.error(
            "file-too-large",
            f"the bundle has {total} bytes; at most {SOURCE_BYTES_MAX} are accepted",
            "keep data elsewhere, and name its place in a parameter",
        )
    for path, content in files.items():
        limit = BYTES_MAX if is_definition(path) else STAGE_FILE_BYTES_MAX
        if len(content) > limit:
            findings.error(
                "file-too-large",
                f"the file has {len(content)} bytes; at most {limit} are accepted",
                "keep data elsewhere, and name its place in a parameter",
                Position(path),
            )
