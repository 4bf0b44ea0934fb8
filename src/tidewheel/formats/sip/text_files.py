"""The files of a definition: their names, their texts, and how each text becomes nodes.

This is what is registered, and all that is read afterwards: a run needs no folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Builder, Node
from tidewheel.formats.sip.limits import JSON_BYTES_MAX, YAML_BYTES_MAX
from tidewheel.formats.sip.placeholders import RESERVED
from tidewheel.formats.sip.templates import RenderedText
from tidewheel.formats.sip.yaml_json import read_json, read_yaml

# The files of one definition: its own and those of its stages, by their paths.

STAGES_FOLDER = "stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class SipSource:
    """Contents by path from the folder of the definition; `file` is the definition itself."""

    file: str
    files: Mapping[str, bytes]
    executable: frozenset[str] = frozenset()
    # Folders that were seen, for advice about those that are missing.
    folders: frozenset[str] = field(default=frozenset(), compare=False)
    _by_folder: Mapping[str, Mapping[str, bytes]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, dict[str, bytes]] = {}
        for path, content in self.files.items():
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, {})[name] = content
            while folder := folder.rpartition("/")[0]:
                found.setdefault(folder, {})
        object.__setattr__(self, "_by_folder", found)
        object.__setattr__(self, "folders", self.folders | (found.keys() - {""}))

    def folder_of(self, stage: str, version: str) -> str | None:
        """Returns the folder of a stage; None if there is none."""
        wanted = folders_for(stage, version)
        return next((folder for folder in wanted if folder in self.folders), None)

    def inside(self, folder: str) -> Mapping[str, bytes]:
        """Returns the files that lie directly in a folder, by name."""
        return self._by_folder.get(folder, {})


def folders_for(stage: str, version: str) -> tuple[str, str]:
    """Returns the folder where a stage belongs, and the one where it is tolerated."""
    return f"{STAGES_FOLDER}/{stage}/{version}", f"{stage}/{version}"


# From the text of one SIP file, rendered if it is a template, to its nodes.

TEMPLATE_SUFFIX = ".j2"
YAML_SUFFIXES = (".yaml", ".yml")
JSON_SUFFIX = ".json"
SUFFIXES = (*YAML_SUFFIXES, JSON_SUFFIX)
BYTES_MAX = max(YAML_BYTES_MAX, JSON_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class FileName:
    """`args.json.j2`: stem, suffix, and whether it is a template."""

    path: str
    stem: str
    suffix: str
    is_template: bool

    @property
    def is_known(self) -> bool:
        return self.suffix in SUFFIXES


def file_name(path: str) -> FileName:
    name = path.rpartition("/")[2]
    is_template = name.endswith(TEMPLATE_SUFFIX)
    name = name.removesuffix(TEMPLATE_SUFFIX)
    for suffix in (*SUFFIXES, ".sh"):
        if name.endswith(suffix) and name != suffix:
            return FileName(path, name.removesuffix(suffix), suffix, is_template)
    stem, dot, suffix = name.partition(".")
    return FileName(path, stem, dot + suffix, is_template)


def decoded(path: str, content: bytes, findings: Findings) -> str | None:
    """Returns the text of a file within its limit; None with a finding."""
    is_json = file_name(path).suffix == JSON_SUFFIX
    limit = JSON_BYTES_MAX if is_json else YAML_BYTES_MAX
    if len(content) > limit:
        findings.error(
            "file-too-large",
            f"{path} has {len(content)} bytes; {'JSON' if is_json else 'YAML'} files may have "
            f"{limit}",
            "make it shorter"
            if is_json
            else f"make it shorter, or write JSON ({JSON_BYTES_MAX})",
            Position(path),
        )
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        findings.error(
            "not-text",
            f"this is no UTF-8 text: byte {content[error.start]:#04x}",
            "save the file as UTF-8",
            Position(path, line),
        )
        return None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        findings.error("not-text", "this is no text file", "", Position(path, line))
        return None
    if (reserved := RESERVED.search(text)) is not None:
        line = text.count("\n", 0, reserved.start()) + 1
        findings.error(
            "reserved-character",
            f"the file has the character U+{ord(reserved[0]):X}, which is kept for our own use",
            "remove it",
            Position(path, line),
        )
        return None
    return text.replace("\r\n", "\n")


def read_plain(path: str, text: str, findings: Findings) -> Node | None:
    """Returns the nodes of a file that is no template."""

    def position(line: int, column: int) -> Position:
        return Position(path, line + 1, column + 1)

    read = read_json if file_name(path).suffix == JSON_SUFFIX else read_yaml
    return read(text, position, Builder(findings), findings)


def read_rendered(path: str, rendered: RenderedText, findings: Findings) -> Node | None:
    """Returns the nodes of a rendered template; places are lines of the template."""

    def position(line: int, column: int) -> Position:
        del column  # a template moves columns
        at = min(line, len(rendered.origins) - 1)
        return Position(path, rendered.origins[at] if at >= 0 else 0)

    read = read_json if file_name(path).suffix == JSON_SUFFIX else read_yaml
    return read(rendered.text, position, Builder(findings, rendered.values), findings)
