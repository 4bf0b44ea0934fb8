"""From the text of one SIP file, rendered if it is a template, to its nodes."""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Builder, Node
from tidewheel.formats.sip.json_text import read_json
from tidewheel.formats.sip.limits import JSON_BYTES_MAX, YAML_BYTES_MAX
from tidewheel.formats.sip.places import RESERVED
from tidewheel.formats.sip.rendering import RenderedText
from tidewheel.formats.sip.yaml_text import read_yaml

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
    """The text of a file within its limit; None with a finding."""
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
    """The nodes of a file that is no template."""

    def position(line: int, column: int) -> Position:
        return Position(path, line + 1, column + 1)

    read = read_json if file_name(path).suffix == JSON_SUFFIX else read_yaml
    return read(text, position, Builder(findings), findings)


def read_rendered(path: str, rendered: RenderedText, findings: Findings) -> Node | None:
    """The nodes of a rendered template; places are lines of the template."""

    def position(line: int, column: int) -> Position:
        del column  # a template moves columns
        at = min(line, len(rendered.origins) - 1)
        return Position(path, rendered.origins[at] if at >= 0 else 0)

    read = read_json if file_name(path).suffix == JSON_SUFFIX else read_yaml
    return read(rendered.text, position, Builder(findings, rendered.values), findings)
