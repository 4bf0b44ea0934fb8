"""Validates a definition: whether it can be registered, whether it can run, all findings.

`validate` reads everything that is stored of a definition and changes nothing. Without a
request it checks what is true for every request; with one, whether that one can run.
`render_stages` gives stages their values when they are due.

One mistake hides no other: after each, the rest is validated as far as it is known. Where
something that decides about values is missing (a stage, a dependency, a file of parameters),
the files of stages are checked as for any request, so that nothing is missed that may be there.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field, replace

from tidewheel.core.graph.checks.circles import strong_components
from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.findings import (
    Finding,
    Findings,
    Lookalikes,
    Position,
    Severity,
    meant,
)
from tidewheel.formats.sip.contradictions import check_contradictions
from tidewheel.formats.sip.definition import (
    DefinitionText,
    DefinitionValues,
    nearest_stage,
    read_text,
)
from tidewheel.formats.sip.lists import check_lists, first_part, other_parts, resolved_lists
from tidewheel.formats.sip.model import (
    FIXED_NAMES,
    JINJA_NAMES,
    ListToCome,
    SipDefinition,
    Stage,
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
    values_by_stage,
    values_of_definition,
    warn_of_names,
)
from tidewheel.formats.sip.placeholders import parameter_to_come, text_of_value
from tidewheel.formats.sip.services import check_services
from tidewheel.formats.sip.stage_folder import StageFolder, read_stage_folder
from tidewheel.formats.sip.stage_renderer import RenderedStage, StageRenderer, Wish
from tidewheel.formats.sip.templates import RenderMoment
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.lazy_dataclasses import dataclass

# Which stage waits for which: names of nothing, circles, and what a stage comes after.

_NAMED_MAX = 10
_ITEM_SHOWN_MAX = 60  # characters
ELEMENTS_CHECKED_MAX = 1_000  # of a request, together; others are rendered when they are due


def check_order(definition: SipDefinition, findings: Findings, obstacles: Findings) -> bool:
    """Reports circles of stages, and names that no stage has; says whether there is an order.

    A circle refuses the definition; an unknown name is an obstacle: it only keeps the workflow
    from running.
    """
    known = {*definition.unread, *(stage.id for stage in definition.stages)}
    # A stage without a name may be any, but for one that is plainly misspelt.
    slips = Lookalikes(known) if "" in definition.unread else None
    has_order = True
    for stage in definition.stages:
        for one in stage.dependencies:
            if isinstance(one, StageDependency) and one.stage == stage.id:
                seen = f"stage {stage.id} depends on itself"
                hint = "remove the dependency, or name another stage"
                findings.error("self-dependency", seen, hint, one.position)
                has_order = False
            elif not isinstance(one, StageDependency) or one.stage in known:
                continue
            elif slips is None or slips.of(one.stage) is not None:
                _report_unknown(stage, one, definition, findings, obstacles)
    return _check_circles(definition, findings) and has_order


def _report_unknown(
    stage: Stage,
    dependency: StageDependency,
    definition: SipDefinition,
    findings: Findings,
    obstacles: Findings,
) -> None:
    others = [one for one in definition.stages if one.id != stage.id]
    near = nearest_stage(dependency.stage, others)
    message = f"stage {stage.id} depends on {dependency.stage!r}, which is not a stage"
    names = ", ".join(one.id for one in others[:_NAMED_MAX]) or "none"
    hint = f"did you mean {near!r}?" if near else f"the other stages are: {names}"
    if stage.for_each is not None and dependency.position == stage.elements_position:
        named = f"for_each of stage {stage.id} names {dependency.stage!r}"
        message = f"{named}, which is not a stage"
        forms = "write a list, a parameter such as {{ names }}, STAGE.OUTPUT, or a stage"
        hint = f"{hint} W{forms[1:]}" if near else f"{forms}; {hint}"
    findings.warning("unknown-stage", message, hint, dependency.position)
    obstacles.error("unknown-stage", message, hint, dependency.position)


def _check_circles(definition: SipDefinition, findings: Findings) -> bool:
    """Reports stages that wait for each other; says whether there are none."""
    children: dict[Hashable, list[Hashable]] = {one.id: [] for one in definition.stages}
    for stage in definition.stages:
        for parent in stage.parents:
            if parent in children and parent != stage.id:
                children[parent].append(stage.id)
    circles = list(strong_components(children))
    for circle in circles:
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
    return not circles


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
        self._is_asked = request is not None
        self._moment = RenderMoment.REQUEST if self._is_asked else RenderMoment.CHECK
        self._is_certain = True  # nothing is missing that decides about values
        self._findings = Findings()
        self._obstacles = Findings()

    def validate(self) -> Validation:
        if not check_request(self._request, self._obstacles):
            self._request = {}
            self._doubt()
        content = self._source.files[self._source.file]
        found_first, nothing = Findings(), DefinitionValues()
        first = read_text(self._source.file, content, nothing, found_first, RenderMoment.CHECK)
        stages = first.stages_among(self._source.folders)
        found = {one.code for one in found_first}
        if first.is_template and first.lacks_stages and found == {"value-kind"}:
            self._refuse_stages_of_parameters("without parameters there are no stages")
            return self._result(first)
        of_folders = Findings()
        read = (read_stage_folder(one, self._source, of_folders) for one in stages)
        folders = {one.stage: one for one in read if one is not None}
        if len(folders) < len(stages) or not all(one.is_whole for one in folders.values()):
            self._doubt()
        if first.is_template:
            text = self._rendered_text(content, self._values(first, folders))
        else:
            text = first
            self._tell(found_first)
        self._tell(of_folders)
        known = text.definition
        if known is None or (stages and not known.stages):
            return self._only_stage_files(text, first.definition, stages, folders)
        if not known.is_whole:
            self._doubt()
        self._check_stages(known, first.definition)
        has_order = check_order(known, self._findings, self._obstacles)
        check_services(known, self._findings, self._obstacles)
        if has_order:
            known = resolved_lists(known, folders)
            text = replace(text, definition=known)
            of_request = self._obstacles if text.is_template else self._findings
            check_lists(known, folders, self._findings, of_request)
            check_contradictions(known, self._findings)
        parts = {
            one.id: first_part(known, one) if has_order else StagePart(stage=one)
            for one in known.stages
            if one.is_on
        }
        return self._with_stage_files(text, ParameterSource(known, folders), parts)

    def _tell(self, found: Findings) -> None:
        for one in found:
            self._findings.add(one)

    def _doubt(self) -> None:
        """Goes on as for any request: of this one it is not known which values it has."""
        self._is_certain, self._moment = False, RenderMoment.CHECK

    def _values(
        self, first: DefinitionText, folders: Mapping[str, StageFolder]
    ) -> DefinitionValues:
        """Returns what the definition's own template knows, by the request and the folders."""
        asked = self._moment is RenderMoment.REQUEST
        parameters = values_of_definition(folders, self._request)
        outputs = (name for one in folders.values() for name in one.outputs)
        awaited = {name for name in outputs if asked and name not in parameters} - FIXED_NAMES
        stages = values_by_stage(folders, self._request)
        to_come = (
            (stage, name)
            for stage, values in stages.items()
            for name in folders[stage].required
            if not asked and name not in values
        )
        listed = first.definition.stages if first.definition is not None else ()
        return DefinitionValues(
            parameters=parameters,
            stages=stages,
            unknown={way: parameter_to_come(".".join(way)) for way in to_come},
            awaited=tuple(sorted(awaited)),
            lists={
                one.id: _parameter_in(first.text, one.elements_position, one.for_each)
                for one in listed
                if isinstance(one.for_each, ListToCome)
            },
        )

    def _rendered_text(self, content: bytes, values: DefinitionValues) -> DefinitionText:
        """Returns the rendered definition; mistakes of a request refuse only the run."""
        found = Findings()
        asked = self._moment is RenderMoment.REQUEST
        text = read_text(self._source.file, content, values, found, self._moment)
        for one in found:
            is_obstacle = asked and one.severity is Severity.ERROR
            (self._obstacles if is_obstacle else self._findings).add(one)
        return text

    def _only_stage_files(
        self,
        text: DefinitionText,
        first: SipDefinition | None,
        stages: tuple[Stage, ...],
        folders: Mapping[str, StageFolder],
    ) -> Validation:
        """Validates the files of stages of a definition that itself cannot be read."""
        self._doubt()
        known = first if first is not None and first.stages else None
        known = known or SipDefinition(id="", version="", stages=stages)
        parts = {one.id: StagePart(stage=one) for one in known.stages if one.id in folders}
        return self._with_stage_files(text, ParameterSource(known, folders), parts)

    def _check_stages(self, definition: SipDefinition, first: SipDefinition | None) -> None:
        """Refuses parameters that change which stages there are; they may change a stage."""
        if first is None or definition.unread:
            return
        found = [(one.id, one.version) for one in definition.stages]
        expected = [(one.id, one.version) for one in first.stages]
        if found != expected:
            changed = [name for name, _ in {*found} ^ {*expected}] or ["their order"]
            self._refuse_stages_of_parameters(some(sorted(changed)))

    def _refuse_stages_of_parameters(self, seen: str) -> None:
        message = f"the list of stages depends on parameters: {seen}"
        hint = "name every stage in the definition, and let `when` say whether it runs"
        self._findings.error("stages-of-parameters", message, hint, Position(self._source.file))

    def _with_stage_files(
        self,
        text: DefinitionText,
        parameters: ParameterSource,
        parts: Mapping[str, StagePart],
    ) -> Validation:
        """Validates the files of these parts of stages, and the parameters of all."""
        definition = parameters.definition
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
        elif not self._is_asked and self._is_certain:
            self._note_parameters(parameters, undeclared, used)
        return replace(
            self._result(text),
            parameters=parameters,
            rendered=rendered,
            undeclared=tuple(undeclared),
        )

    def _check_elements(self, wish: Wish) -> None:
        """Renders elements of lists that are known, and reports the first of each stage that
        cannot be; of the others there is no trace. Nothing new is found where the first element
        of a stage cannot be rendered already."""
        left = self._elements_checked_max
        errors = (*self._findings, *self._obstacles)
        wrong = {one.position.file for one in errors if one.severity is Severity.ERROR}
        for first in wish.parts:
            folder = wish.source.folders.get(first.stage.id)
            if folder is None or any(one.startswith(f"{folder.folder}/") for one in wrong):
                continue
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
                other = ", or name it in the outputs.yaml of an earlier stage"
                is_later = later.issuperset(spec.stages)
                seen = f"the parameter {spec.name!r} of {', '.join(spec.stages)} has no default"
                advice = f"give it with each request: {spec.name}=VALUE"
                advice += other if is_later else ""
                place = Position(self._source.file)
                self._findings.note("required-parameter", seen, advice, place)
        declared = [spec.name for spec in parameters.specs()]
        for name in undeclared:
            guess, place = _guess(name, declared), Position(*used[name])
            report = self._findings.warning if guess else self._findings.note
            seen = f"a template uses {name!r}, which no stage declares, so it has no default"
            hint = guess or f"give it with each request: {name}=VALUE"
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
            lacks = "but no earlier stage has returned it"
            seen = f"stage {part} needs the parameter {name!r}, {lacks}"
            hint = "let an earlier stage return it, or give it with the request"
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
                f"a name with '-' is not a Jinja2 name: write {{{{ parameters['{one}'] }}}} "
                f"instead of {{{{ {one} }}}}"
            )
    fixed = (one for one in FIXED_NAMES if abs(len(one) - len(name)) <= 1)
    return meant(name, [*declared, *fixed])


def _parameter_in(text: str, position: Position, listed: ListToCome) -> str:
    """Returns the parameter that is a stage's list as its line names it: `image.beams`, too."""
    lines = text.split("\n")
    line = lines[position.line - 1] if 0 < position.line <= len(lines) else ""
    written = re.search(rf"\{{\{{\s*({re.escape(listed.parameter)}\.\w+)\s*\}}\}}", line)
    return listed.parameter if written is None else written[1]


def _names(text: DefinitionText) -> Mapping[str, int]:
    return text.rendered.names if text.rendered is not None else {}
