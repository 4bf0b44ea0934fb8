"""Validates a definition: whether it can be registered, whether it can run, all findings.

`validate` reads everything that is stored of a definition and changes nothing. Without a
request it checks what is true for every request; with one, whether that one can run.
`render_stages` gives stages their values when they are due.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import reduce
from typing import NamedTuple

from tidewheel.core.graph.checks.circles import strong_components
from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.findings import Finding, Findings, Position, Severity, meant
from tidewheel.formats.sip.definition import DefinitionText, nearest_stage, read_text
from tidewheel.formats.sip.field_reader import pair
from tidewheel.formats.sip.lists import check_lists, first_part, other_parts, resolved_lists
from tidewheel.formats.sip.model import (
    FIXED_NAMES,
    JINJA_NAMES,
    SipDefinition,
    Stage,
    StageCondition,
    StageDependency,
)
from tidewheel.formats.sip.parameters import (
    ParameterSource,
    ParameterSpec,
    StagePart,
    Values,
    check_request,
    refused_unused,
    report_missing,
    report_unused,
    values_of_definition,
    warn_of_names,
)
from tidewheel.formats.sip.placeholders import text_of_value
from tidewheel.formats.sip.stage_folder import StageFolder, read_stage_folder
from tidewheel.formats.sip.stage_renderer import RenderedStage, StageRenderer, Wish
from tidewheel.formats.sip.templates import RenderMoment
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.lazy_dataclasses import dataclass

# Which stage waits for which: names of nothing, circles, and what a stage comes after.

_NAMED_MAX = 10
_ITEM_SHOWN_MAX = 60  # characters
ELEMENTS_CHECKED_MAX = 1_000  # of a request, together; others are rendered when they are due


def check_order(definition: SipDefinition, findings: Findings, obstacles: Findings) -> None:
    """Reports circles of stages, and names that no stage has.

    A circle refuses the definition; an unknown name is an obstacle: it only keeps the workflow
    from running.
    """
    known = {stage.id for stage in definition.stages}
    for stage in definition.stages:
        for one in stage.dependencies:
            if isinstance(one, StageDependency) and one.stage == stage.id:
                seen = f"stage {stage.id} depends on itself"
                hint = "remove the dependency, or name another stage"
                findings.error("self-dependency", seen, hint, one.position)
            elif isinstance(one, StageDependency) and one.stage not in known:
                _report_unknown(stage, one, definition, findings, obstacles)
    _check_circles(definition, findings)


def _report_unknown(
    stage: Stage,
    dependency: StageDependency,
    definition: SipDefinition,
    findings: Findings,
    obstacles: Findings,
) -> None:
    others = [one for one in definition.stages if one.id != stage.id]
    near = nearest_stage(dependency.stage, others)
    message = f"stage {stage.id} depends on {dependency.stage!r}, which is no stage"
    names = ", ".join(one.id for one in others[:_NAMED_MAX]) or "none"
    hint = f"did you mean {near!r}?" if near else f"the other stages are: {names}"
    findings.warning("unknown-stage", message, hint, dependency.position)
    obstacles.error("unknown-stage", message, hint, dependency.position)


def _check_circles(definition: SipDefinition, findings: Findings) -> None:
    children: dict[Hashable, list[Hashable]] = {one.id: [] for one in definition.stages}
    for stage in definition.stages:
        for parent in stage.parents:
            if parent in children and parent != stage.id:
                children[parent].append(stage.id)
    for circle in strong_components(children):
        path = _way_round(definition, circle)
        first = definition.stage(path[0])
        assert first is not None
        at = next(
            one.position
            for one in first.dependencies
            if isinstance(one, StageDependency) and one.stage in circle
        )
        shown = path if len(path) <= _NAMED_MAX else [*path[:_NAMED_MAX], "…", path[-1]]
        seen = f"stages wait for each other: {' waits for '.join(shown)}"
        findings.error("stage-circle", seen, "remove one of these dependencies", at)


def _way_round(definition: SipDefinition, circle: frozenset[Hashable]) -> list[str]:
    """Returns a path from a stage of a circle through its parents back to that stage."""
    by_id = {one.id: one for one in definition.stages}
    here = next(one.id for one in definition.stages if one.id in circle)
    path = [here]
    while True:
        here = next(one for one in by_id[here].parents if one in circle and one != here)
        path.append(here)
        if here in path[:-1]:
            return path[path.index(here) :]


# Stages that can never begin: what they wait for excludes itself. A stage that waits for
# another, whatever for, waits for all that the other one waits for: nothing has a result before
# it has begun. So what must have become of earlier stages is gathered along the way, and one
# that needs both the success and the failure of one is told of, once, where the two meet. Sets
# are bits of a number: ten thousand stages may wait in a row.

# Every other condition goes with each of these.
_IS_SUCCESS = {
    StageCondition.COMPLETE: True,
    StageCondition.FAILED: False,
    StageCondition.ABORTED: False,
}


class _Needs(NamedTuple):
    """Holds the stages that must have succeeded and those that must have failed, as bits."""

    succeeded: int = 0
    failed: int = 0

    @property
    def disputed(self) -> int:
        return self.succeeded & self.failed

    def joined(self, other: _Needs) -> _Needs:
        return _Needs(self.succeeded | other.succeeded, self.failed | other.failed)


def check_contradictions(definition: SipDefinition, findings: Findings) -> None:
    """Warns of stages that can never begin; the definition must have no circles."""
    bits = _disputable(definition)
    if not bits:  # nearly always: then nothing is gathered
        return
    gathered: dict[str, _Needs] = {}
    for stage in _in_order(definition):
        ways = [(one, _needs_of(one, bits, gathered)) for one in _on_stages(stage)]
        needs = reduce(_Needs.joined, (one for _, one in ways), _Needs())
        gathered[stage.id] = needs
        if needs.disputed and not any(
            gathered.get(one, _Needs()).disputed for one in stage.parents
        ):
            _report(stage, bits, ways, findings)


def _disputable(definition: SipDefinition) -> dict[str, int]:
    """Returns a bit for each stage whose success some wait for, and whose failure others."""
    waited: dict[bool, set[str]] = {True: set(), False: set()}
    for stage in definition.stages:
        for one in _on_stages(stage):
            if one.condition in _IS_SUCCESS:
                waited[_IS_SUCCESS[one.condition]].add(one.stage)
    both = sorted(waited[True] & waited[False])
    return {name: 1 << number for number, name in enumerate(both)}


def _needs_of(
    dependency: StageDependency, bits: Mapping[str, int], gathered: Mapping[str, _Needs]
) -> _Needs:
    """Returns which stages must have succeeded or failed for one dependency to be met."""
    is_success = _IS_SUCCESS.get(dependency.condition)
    bit = bits.get(dependency.stage, 0)
    own = _Needs(bit if is_success else 0, bit if is_success is False else 0)
    return own.joined(gathered.get(dependency.stage, _Needs()))


def _in_order(definition: SipDefinition) -> Iterator[Stage]:
    """Yields each stage after all that it waits for."""
    waiting = list(reversed(definition.stages))
    done: set[str] = set()
    while waiting:
        stage = waiting[-1]
        parents = [definition.stage(one) for one in stage.parents if one not in done]
        if open_ones := [one for one in parents if one is not None]:
            waiting.extend(open_ones)
            continue
        waiting.pop()
        if stage.id not in done:
            done.add(stage.id)
            yield stage


def _on_stages(stage: Stage) -> Iterator[StageDependency]:
    return (one for one in stage.dependencies if isinstance(one, StageDependency))


def _report(
    stage: Stage,
    bits: Mapping[str, int],
    ways: list[tuple[StageDependency, _Needs]],
    findings: Findings,
) -> None:
    """Reports two dependencies that exclude each other, at the place of the second."""
    needs = reduce(_Needs.joined, (brought for _, brought in ways))
    name, bit = next((name, bit) for name, bit in bits.items() if bit & needs.disputed)
    well = next(one for one in ways if one[1].succeeded & bit)
    badly = next(one for one in ways if one[1].failed & bit)
    first, second = sorted((well, badly), key=lambda one: one[0].position)
    finished = pair("condition", "finished", stage.position)
    findings.warning(
        "contradiction",
        f"stage {stage.id} can never begin: {_part(name, bit, *first)}, and "
        f"{_part(name, bit, *second)}",
        "all dependencies must hold: remove one of the two, or make two stages of it; "
        f"{finished} holds whichever way a stage ended",
        second[0].position,
    )


def _part(name: str, bit: int, through: StageDependency, needs: _Needs) -> str:
    if through.stage == name:
        return f"it needs {name} {through.condition.value}"
    end = StageCondition.COMPLETE if needs.succeeded & bit else StageCondition.FAILED
    return f"{through.stage}, which it waits for, needs {name} {end.value}"


# The whole of a definition.


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Holds what was read of a definition, and what is wrong with it."""

    text: DefinitionText
    parameters: ParameterSource | None = None
    rendered: Mapping[str, RenderedStage] = field(default_factory=dict)
    # Errors here refuse the registration, errors in `obstacles` only the run.
    findings: Findings = field(default_factory=Findings)
    obstacles: Findings = field(default_factory=Findings)
    # Parameters that templates use and no stage declares: a request must give them.
    undeclared: tuple[str, ...] = ()

    @property
    def definition(self) -> SipDefinition | None:
        return self.text.definition

    @property
    def registrable(self) -> bool:
        return self.definition is not None and not self.findings.has_errors

    @property
    def runnable(self) -> bool:
        return self.registrable and not self.obstacles.has_errors

    @property
    def specs(self) -> tuple[ParameterSpec, ...]:
        """Returns the parameters that stages declare, then those that templates only use."""
        if self.parameters is None:
            return ()
        undeclared = (ParameterSpec(name, (), False) for name in self.undeclared)
        return (*self.parameters.specs(), *undeclared)

    def refuse_unused(self) -> None:
        """Refuses the run if a parameter changes nothing: it is probably misspelt."""
        for one in refused_unused(self.findings):
            self.obstacles.add(one)

    def all_findings(self, *, strict: bool = False) -> Findings:
        """Returns findings and obstacles; a warning that is an obstacle, too, is left out.

        ``strict`` makes errors of the other warnings.
        """
        merged = Findings()
        worse = {(one.code, one.position, one.message) for one in self.obstacles}
        for one in self.findings:
            is_error = one.severity is Severity.ERROR
            if is_error or (one.code, one.position, one.message) not in worse:
                is_raised = strict and one.severity is Severity.WARNING
                merged.add(replace(one, severity=Severity.ERROR) if is_raised else one)
        for one in self.obstacles:
            merged.add(one)
        return merged


def validate(
    source: SipSource,
    request: Values | None = None,
    elements_checked_max: int = ELEMENTS_CHECKED_MAX,
) -> Validation:
    """Returns what a definition says and what is wrong; with a request, whether it can run.

    Of lists that are known so many elements are rendered, together, besides the first of each.
    """
    return _Validator(source, request, elements_checked_max).validate()


class _Validator:
    """Validates one definition, in one pass."""

    def __init__(
        self, source: SipSource, request: Values | None, elements_checked_max: int
    ) -> None:
        self._source = source
        self._elements_checked_max = elements_checked_max
        self._request = request or {}
        self._moment = RenderMoment.CHECK if request is None else RenderMoment.REQUEST
        self._findings = Findings()
        self._obstacles = Findings()

    def validate(self) -> Validation:
        if not check_request(self._request, self._obstacles):
            self._request = {}
        content = self._source.files[self._source.file]
        first_findings = Findings()
        first = read_text(self._source.file, content, {}, first_findings, RenderMoment.CHECK)
        stages = first.definition.stages if first.definition is not None else ()
        found = {one.code for one in first_findings}
        if first.is_template and first.lacks_stages and found == {"value-kind"}:
            self._refuse_stages_of_parameters("without its parameters it has none")
            return self._result(first)
        read = (read_stage_folder(one, self._source, self._findings) for one in stages)
        folders = {one.stage: one for one in read if one is not None}
        if first.is_template:
            values = values_of_definition(folders, self._request)
            text = self._rendered_text(content, values, folders)
        else:
            text = first
            for one in first_findings:
                self._findings.add(one)
        if text.definition is None:
            return self._result(text)
        self._check_stages(text.definition, stages)
        check_order(text.definition, self._findings, self._obstacles)
        if not self._findings.has_errors:
            known = resolved_lists(text.definition, folders)
            text = replace(text, definition=known)
            of_request = self._obstacles if text.is_template else self._findings
            check_lists(known, folders, self._findings, of_request)
            check_contradictions(known, self._findings)
        assert text.definition is not None
        parameters = ParameterSource(text.definition, folders)
        if self._findings.has_errors:
            return replace(self._result(text), parameters=parameters)
        return self._with_stage_files(text, parameters)

    def _rendered_text(
        self, content: bytes, values: Values, folders: Mapping[str, StageFolder]
    ) -> DefinitionText:
        """Returns the rendered definition; mistakes of a request refuse only the run."""
        found = Findings()
        asked = self._moment is RenderMoment.REQUEST
        outputs = (name for one in folders.values() for name in one.outputs)
        awaited = {name for name in outputs if asked and name not in values} - FIXED_NAMES
        file, moment = self._source.file, self._moment
        text = read_text(file, content, values, found, moment, sorted(awaited))
        for one in found:
            is_obstacle = asked and one.severity is Severity.ERROR
            (self._obstacles if is_obstacle else self._findings).add(one)
        return text

    def _check_stages(self, definition: SipDefinition, stages: tuple[Stage, ...]) -> None:
        """Refuses parameters that change which stages there are; they may change a stage."""
        found = [(one.id, one.version) for one in definition.stages]
        expected = [(one.id, one.version) for one in stages]
        if found != expected and not self._findings.has_errors:
            changed = [name for name, _ in {*found} ^ {*expected}] or ["their order"]
            self._refuse_stages_of_parameters(some(sorted(changed)))

    def _refuse_stages_of_parameters(self, seen: str) -> None:
        message = f"which stages there are depends on parameters: {seen}"
        runs = "whether it runs can depend on a condition"
        hint = f"name every stage in the definition itself; {runs}"
        self._findings.error("stages-of-parameters", message, hint, Position(self._source.file))

    def _with_stage_files(
        self, text: DefinitionText, parameters: ParameterSource
    ) -> Validation:
        definition = parameters.definition
        parts = {one.id: first_part(definition, one) for one in definition.stages if one.is_on}
        wish = Wish(
            source=parameters,
            parts=tuple(parts.values()),
            request=self._request,
            moment=self._moment,
        )
        renderer = StageRenderer(wish, self._findings, self._obstacles)
        by_part = renderer.render()
        rendered = {
            name: by_part[part.name] for name, part in parts.items() if part.name in by_part
        }
        if not self._findings.has_errors and not self._obstacles.has_errors:
            self._check_elements(wish)
        used = {
            **{name: (self._source.file, line) for name, line in _names(text).items()},
            **renderer.names,
        }
        known = {spec.name for spec in parameters.specs()} | FIXED_NAMES | JINJA_NAMES
        known |= {stage.id for stage in definition.stages}
        known |= {name for folder in parameters.folders.values() for name in folder.outputs}
        undeclared = [name for name in used if name not in known]
        warn_of_names(parameters, _names(text), self._request, self._findings)
        if self._moment is RenderMoment.REQUEST:
            values = wish.values()
            missing = {name: values[part.name].missing for name, part in parts.items()}
            report_missing(parameters, missing, self._obstacles)
            ids = (stage.id for stage in definition.stages)
            report_unused(self._request, {*used, *parameters.declared}, ids, self._findings)
        else:
            self._note_parameters(parameters, undeclared, used)
        return replace(
            self._result(text),
            parameters=parameters,
            rendered=rendered,
            undeclared=tuple(undeclared),
        )

    def _check_elements(self, wish: Wish) -> None:
        """Renders elements of lists that are known, and reports the first of each stage that
        cannot be; of the others there is no trace."""
        left = self._elements_checked_max
        for first in wish.parts:
            rest = other_parts(wish.source.definition, first, left)
            left -= len(rest)
            found = _problems_of(replace(wish, parts=rest))
            while len(rest) > 1 and found:  # which of them is it?
                half = rest[: len(rest) // 2]
                in_half = _problems_of(replace(wish, parts=half))
                rest, found = (half, in_half) if in_half else (rest[len(half) :], found)
            if found and len(rest) == 1:
                found = _problems_of(replace(wish, parts=rest))
            for one in found:
                item = text_of_value(rest[0].item)
                shown = item if len(item) <= _ITEM_SHOWN_MAX else f"{item[:_ITEM_SHOWN_MAX]}…"
                message = (
                    f"{one.message} (element {rest[0].index} of {first.stage.id}: {shown})"
                )
                self._obstacles.add(replace(one, message=message))

    def _note_parameters(
        self,
        parameters: ParameterSource,
        undeclared: list[str],
        used: Mapping[str, tuple[str, int]],
    ) -> None:
        later = {one.id for one in parameters.definition.stages if one.parents}
        for spec in parameters.specs():
            if spec.is_needed:
                other = "; or a stage before it, which names it in its outputs.yaml"
                is_later = later.issuperset(spec.stages)
                seen = f"the parameter {spec.name!r} of {', '.join(spec.stages)} has no default"
                advice = f"a request gives it: {spec.name}=VALUE" + (other if is_later else "")
                place = Position(self._source.file)
                self._findings.note("required-parameter", seen, advice, place)
        declared = [spec.name for spec in parameters.specs()]
        for name in undeclared:
            guess, place = _guess(name, declared), Position(*used[name])
            report = self._findings.warning if guess else self._findings.note
            seen = f"{name!r} is no parameter of any stage: every request must give it"
            hint = guess or f"a request gives it: {name}=VALUE"
            report("undeclared-parameter", seen, hint, place)

    def _result(self, text: DefinitionText) -> Validation:
        return Validation(text=text, findings=self._findings, obstacles=self._obstacles)


def _problems_of(wish: Wish) -> list[Finding]:
    """Returns the errors of parts that are rendered with these values."""
    findings = Findings()
    if wish.parts:
        StageRenderer(wish, findings, findings).render()
    return [one for one in findings.sorted() if one.severity is Severity.ERROR]


def render_stages(
    parameters: ParameterSource,
    parts: Iterable[StagePart],
    request: Values,
    outputs: Mapping[str, Values],
    findings: Findings,
) -> Mapping[str, RenderedStage] | None:
    """Returns what parts execute that are due, by name, rendered with outputs of earlier
    stages; None after errors."""
    parts = tuple(parts)
    before = findings.error_count
    check_request(request, findings)
    own = (one for part in parts for one in part.made.items())
    for stage_id, made in (*outputs.items(), *own):
        check_request(made, findings, f"the outputs of {stage_id}")
    if findings.error_count > before:
        return None
    wish = Wish(
        source=parameters,
        parts=parts,
        request=request,
        moment=RenderMoment.DUE,
        outputs=outputs,
    )
    for part, values in wish.values().items():
        for name in values.missing:
            lacks = "and no stage before it has made this output"
            seen = f"stage {part} needs the parameter {name!r}, {lacks}"
            hint = "a stage gives it with its outputs, or the request does"
            findings.error("missing-parameter", seen, hint)
    if findings.error_count > before:
        return None
    rendered = StageRenderer(wish, findings, findings).render()
    return rendered if findings.error_count == before else None


def _guess(name: str, declared: list[str]) -> str:
    """Returns a hint what an undeclared name may have meant; "" if nothing is near."""
    for one in declared:
        if "-" in one and name in one.split("-"):
            return (
                f"a name with '-' is no Jinja2 name: write {{{{ parameters['{one}'] }}}} "
                f"instead of {{{{ {one} }}}}"
            )
    fixed = (one for one in FIXED_NAMES if abs(len(one) - len(name)) <= 1)
    return meant(name, [*declared, *fixed])


def _names(text: DefinitionText) -> Mapping[str, int]:
    return text.rendered.names if text.rendered is not None else {}
