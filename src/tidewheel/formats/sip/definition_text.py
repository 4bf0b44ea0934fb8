"""The text of a definition file: rendered where it is a template, then read.

Which stages a workflow has is known without any parameter: a first look reads the file with all
of them unknown. Whatever a request says, the stages must be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Fields
from tidewheel.formats.sip.model import SipDefinition
from tidewheel.formats.sip.names import name_and_version
from tidewheel.formats.sip.places import Json
from tidewheel.formats.sip.plain_values import is_null
from tidewheel.formats.sip.reading import is_instance, read_definition
from tidewheel.formats.sip.rendering import (
    Moment,
    Names,
    RenderedText,
    Template,
    render_all,
)
from tidewheel.formats.sip.sip_source import SipSource
from tidewheel.formats.sip.text_files import (
    TEMPLATE_SUFFIX,
    decoded,
    file_name,
    read_plain,
    read_rendered,
)

_TEMPLATE_SIGNS = ("{{", "{%", "{#")


@dataclass(frozen=True, slots=True)
class DefinitionText:
    """A definition as far as it could be read; `rendered` if it is a template that could be."""

    definition: SipDefinition | None
    text: str = ""
    rendered: RenderedText | None = None
    is_template: bool = False
    lacks_stages: bool = False  # the key is there, and nothing under it


def is_template(file: str, text: str) -> bool:
    """Its name says so, or it plainly is one."""
    return file_name(file).is_template or any(sign in text for sign in _TEMPLATE_SIGNS)


def first_look(file: str, content: bytes) -> list[tuple[str, str]]:
    """Id and version of each stage, before anything else is known."""
    findings = Findings()
    read = read_text(file, content, {}, findings, Moment.CHECK)
    return [(one.id, one.version) for one in read.definition.stages] if read.definition else []


def definitions_among(sources: Sequence[SipSource]) -> Sequence[SipSource]:
    """Of the files of a folder, those that could be definitions; all, if none could.

    People keep scheduling block instances beside the workflows that they ask for.
    """
    return [one for one in sources if not _is_instance(one)] or sources


def _is_instance(source: SipSource) -> bool:
    content = source.files[source.file]
    if b"processing_blocks" not in content or file_name(source.file).is_template:
        return False
    findings = Findings()
    text = decoded(source.file, content, findings)
    root = None if text is None else read_plain(source.file, text, findings)
    return root is not None and is_instance(root)


def read_text(
    file: str,
    content: bytes,
    parameters: Mapping[str, Json],
    findings: Findings,
    moment: Moment,
) -> DefinitionText:
    """The definition with these parameters."""
    text = decoded(file, content, findings)
    if text is None:
        return DefinitionText(None)
    if not is_template(file, text):
        root = read_plain(file, text, findings)
        rendered = None
    else:
        _check_name(file, findings)
        template = Template(
            file=file, text=text, own={**parameters, "parameters": dict(parameters)}
        )
        (rendered,) = render_all([template], Names(), findings, moment)
        root = read_rendered(file, rendered, findings) if rendered is not None else None
    definition = None
    if root is not None:
        definition = read_definition(root, name_and_version(file_name(file)), findings)
    stages = root.get("stages") if isinstance(root, Fields) else None
    return DefinitionText(
        definition,
        text,
        rendered,
        is_template(file, text),
        lacks_stages=stages is not None and is_null(stages),
    )


def _check_name(file: str, findings: Findings) -> None:
    if not file_name(file).is_template:
        findings.warning(
            "template-name",
            f"{file} is a template, and its name does not say so",
            f"call it {file}{TEMPLATE_SUFFIX}",
            Position(file),
        )
