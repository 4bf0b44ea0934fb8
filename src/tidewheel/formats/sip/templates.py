"""Renders the templates of SIP files in a limited child process, many in one go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path as FilePath
from typing import Any

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.model import JINJA_NAMES
from tidewheel.formats.sip.placeholders import Json, PrintedValue
from tidewheel.formats.templates import (
    RenderChild,
    RenderFailure,
    ask_child_for_lines,
    limits_for,
    parse_failure,
)
from tidewheel.lazy_dataclasses import dataclass

CHILD_MODULE = "tidewheel.formats.sip.template_environment"
# There is nothing to be found there: a template reads no files.
_NO_FOLDER = FilePath("/")
_TEMPLATES_MAX = 200  # in one process
LACKS_VALUE = "template-undefined"
_CPU_SECONDS_PER_TEMPLATE = 0.01


Path = tuple[str | int, ...]  # of keys and indices, to a value within the names


class RenderMoment(StrEnum):
    """Names the moments at which a template is rendered; each says what may be missing."""

    CHECK = "check"  # parameters may come with a request
    REQUEST = "request"  # outputs of stages may come with the run
    DUE = "due"  # nothing
    GLANCE = "glance"  # anything: to look at what follows a mistake


@dataclass(frozen=True, slots=True)
class Names:
    """Holds names that all templates know.

    Each path of ``unknown`` leads to one without a value, and has what people read there.
    """

    values: Mapping[str, Json] = field(default_factory=dict)
    unknown: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Holds a text to render.

    ``unknown`` has, by path, what people read where a value is missing.
    """

    file: str
    text: str
    own: Mapping[str, Json] = field(default_factory=dict)
    unknown: Mapping[Path, str] = field(default_factory=dict)
    awaited: tuple[str, ...] = ()  # names that can be printed, and not looked at otherwise


@dataclass(frozen=True, slots=True)
class RenderedText:
    """Holds lines with places, the lines of the template that made them, and the values."""

    lines: tuple[str, ...]
    origins: tuple[int, ...]
    values: tuple[PrintedValue, ...] = ()
    names: Mapping[str, int] = field(default_factory=dict)  # used, with their first lines
    is_glanced: bool = False  # it lacks values, of which findings tell
    lacking: tuple[RenderFailure, ...] = ()  # what these are

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def for_compose(self) -> RenderedText:
        """Returns the text for docker-compose, which finds no variable in its values."""
        return replace(self, values=tuple(one.for_compose() for one in self.values))


def render_all(
    templates: Sequence[Template], shared: Names, findings: Findings, moment: RenderMoment
) -> list[RenderedText | None]:
    """Returns each template's text, or None with a finding; all know the ``shared`` names.

    One that lacks a value is rendered once more, with unknown values in such places, unless it
    is due: so all of them are reported, and the mistakes that come after them can be found.
    """
    answers = _ask(templates, shared, moment, glance=False)
    failed = [
        number
        for number, one in enumerate(answers)
        if isinstance(one, RenderFailure) and one.code == LACKS_VALUE
    ]
    told = list(answers)
    if failed and moment is not RenderMoment.DUE:
        again = _ask([templates[number] for number in failed], shared, moment, glance=True)
        for number, answer in zip(failed, again, strict=True):
            if isinstance(answer, RenderedText):
                told[number] = replace(answer, is_glanced=True)
    rendered: list[RenderedText | None] = []
    for template, first, answer in zip(templates, answers, told, strict=True):
        found = [first] if isinstance(first, RenderFailure) else []
        found += answer.lacking if isinstance(answer, RenderedText) else ()
        for one in found:
            place = Position(template.file, one.line)
            findings.error(one.code, one.message, one.hint, place)
        rendered.append(answer if isinstance(answer, RenderedText) else None)
    return rendered


_Answer = RenderedText | RenderFailure


def _ask(
    templates: Sequence[Template], shared: Names, moment: RenderMoment, *, glance: bool
) -> list[_Answer]:
    """Returns an answer or a failure for each template.

    Answers come one by one, so that it is known which template takes all the time. That one is
    tried again as the first of the rest: only if it fails alone is it to blame.
    """
    answers: list[_Answer] = []
    while len(answers) < len(templates):
        rest = templates[len(answers) : len(answers) + _TEMPLATES_MAX]
        request: dict[str, object] = {
            "moment": moment.value,
            "glance": glance,
            "hidden": sorted(JINJA_NAMES),
            "shared": dict(shared.values),
            "unknown": list(shared.unknown.items()),
            "templates": [
                {
                    "text": one.text,
                    "own": dict(one.own),
                    "unknown": list(one.unknown.items()),
                    "awaited": one.awaited,
                }
                for one in rest
            ],
        }
        # Many small ones take their time, too.
        more = _CPU_SECONDS_PER_TEMPLATE * len(rest)
        limits = limits_for("".join(one.text for one in rest), more)
        child = RenderChild(CHILD_MODULE, _NO_FOLDER)
        heard, failure = ask_child_for_lines(child, request, limits, len(rest))
        answers += [_parse_answer(one) for one in heard]
        if not heard:
            assert failure is not None
            answers.append(failure)
    return answers


def _parse_answer(answer: dict[str, Any]) -> _Answer:
    if "code" in answer:
        return parse_failure(answer)
    return RenderedText(
        tuple(map(str, answer["lines"])),
        tuple(max(1, int(line)) for _, line in answer["origins"]),
        tuple(
            PrintedValue(value=one.get("value"), unknown=one.get("unknown", ""))
            for one in answer["values"]
        ),
        {str(name): int(line) for name, line in answer["names"].items()},
        lacking=tuple(map(parse_failure, answer["lacking"])),
    )
