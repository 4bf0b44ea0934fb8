"""Finds the values of parameters: of the request, else an earlier stage, else the default.

Each stage sees its own parameters, whatever the request gives, the outputs that stages before
it have declared, and, last, defaults of other stages. (DESIGN §10)

A request has the structure of what it gives values to (seed 004, "Use of templates"): a mapping
under the id of a stage gives them to this stage alone, and counts more there than what is given
to all of them.

A value is JSON if it can be read as such, else a text: `4`, `true`, `[1, 2]`, `north`. A
version such as `1.10` that must stay a text is quoted: `'"1.10"'`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from itertools import chain
from pathlib import Path

from tidewheel.core.graph.findings import (
    Finding,
    Findings,
    InvalidDefinition,
    Position,
    Severity,
    meant,
)
from tidewheel.errors import BadSetting
from tidewheel.formats.sip.document import Fields, plain_value
from tidewheel.formats.sip.model import (
    DEPTH_MAX,
    FIXED_NAMES,
    ITEM,
    JINJA_NAMES,
    PARAMETERS_BYTES_MAX,
    SipDefinition,
    Stage,
)
from tidewheel.formats.sip.placeholders import RESERVED, Json, output_to_come, parameter_to_come
from tidewheel.formats.sip.stage_folder import StageFolder
from tidewheel.formats.sip.text_files import decoded, read_plain
from tidewheel.lazy_dataclasses import dataclass

Values = Mapping[str, Json]
UNUSED_PARAMETER = "unused-parameter"
REQUEST = Position("request")


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePart:
    """Holds a stage that is given its values, or one element of a stage with for_each."""

    stage: Stage
    index: int | None = None  # of the element; None also where no element is known
    item: Json = None  # the element itself
    # Outputs of earlier stages that are for this element alone, by stage.
    made: Mapping[str, Values] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.stage.part_name(self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageValues:
    """Holds the values that the templates of one stage know."""

    known: Values
    to_come: Mapping[str, str] = field(default_factory=dict)  # outputs: by which stage
    missing: tuple[str, ...] = ()  # required, and nobody gives them
    made: frozenset[str] = frozenset()  # known, as outputs of earlier stages or as elements
    awaits_item: bool = False  # the element of its list

    @property
    def shown(self) -> dict[str, str]:
        """Returns, by name, what people read in place of values that are not known yet."""
        awaited = {name: output_to_come(one, name) for name, one in self.to_come.items()}
        asked = (*self.missing, ITEM) if self.awaits_item else self.missing
        return {name: parameter_to_come(name) for name in asked} | awaited


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """Describes a parameter of a workflow to those who request it."""

    name: str
    stages: tuple[str, ...]  # that declare it
    has_default: bool
    default: Json = None
    provided_by: tuple[str, ...] = ()  # stages whose output it may be

    @property
    def is_needed(self) -> bool:
        """Says whether a run needs a request that gives this parameter."""
        return not self.has_default and not self.provided_by


@dataclass(frozen=True, slots=True)
class ParameterSource:
    """Holds what gives parameters their values, but for requests: definition and folders."""

    definition: SipDefinition
    folders: Mapping[str, StageFolder]
    defaults: Values = field(init=False)  # of all stages
    declared: frozenset[str] = field(init=False)  # by any stage
    _providers: frozenset[str] = field(init=False)  # stages that run and have outputs

    def __post_init__(self) -> None:
        folders = ((self.definition.stage(name), one) for name, one in self.folders.items())
        providers = (one.stage for stage, one in folders if stage is None or stage.is_on)
        providers = (one for one in providers if self.folders[one].outputs)
        object.__setattr__(self, "_providers", frozenset(providers))
        object.__setattr__(self, "defaults", all_defaults(self.folders))
        object.__setattr__(self, "declared", _declared(self.folders))

    def values_for(
        self, part: StagePart, request: Values, outputs: Mapping[str, Values] | None = None
    ) -> StageValues:
        """Returns the values of a stage, or of one of its elements.

        ``outputs`` are by stage; they are None before the stage is due.
        """
        stage = part.stage
        if outputs is not None and part.made:
            outputs = {**outputs, **part.made}
        # What a request gives all stages, and over it what it gives this one.
        given = {
            **{name: value for name, value in request.items() if value is not None},
            **self.given_apart(stage.id, request),
        }
        folder = self.folders.get(stage.id)
        own = dict(folder.defaults) if folder else {}
        made: dict[str, Json] = {}
        to_come: dict[str, str] = {}
        # The nearest come first. Most workflows have none, and a chain of stages is long.
        before = self.definition.upstream(stage.id) if self._providers else ()
        for earlier in (one for one in before if one in self._providers):
            for name in self.folders[earlier].outputs:
                if outputs is None:
                    to_come.setdefault(name, earlier)
                elif name in outputs.get(earlier, {}):
                    made.setdefault(name, outputs[earlier][name])
        is_element = stage.is_mapped and part.index is not None
        if stage.is_mapped:  # nothing else is the element
            for names in (own, given, made, to_come):
                names.pop(ITEM, None)
        if is_element:
            made[ITEM] = part.item
        known = {**self.defaults, **own, **made, **given}
        awaited = {name: one for name, one in to_come.items() if name not in given}
        missing = tuple(
            name
            for name in (folder.required if folder else ())
            if name not in awaited and name not in made and name not in given
            if not (stage.is_mapped and name == ITEM)
        )
        unknown = {*awaited, *missing}
        if stage.is_mapped and not is_element:
            unknown.add(ITEM)
        return StageValues(
            known={name: value for name, value in known.items() if name not in unknown},
            to_come=awaited,
            missing=missing,
            made=frozenset(made.keys() - given.keys()),
            awaits_item=stage.is_mapped and not is_element,
        )

    def off_provider(self, stage: str, name: str) -> str:
        """Returns the stage before one that would make an output if it ran; "" if none."""
        before = self.definition.upstream(stage)
        off = (one for one in before if one in self.folders and one not in self._providers)
        return next((one for one in off if name in self.folders[one].outputs), "")

    def given_apart(self, stage: str, request: Values) -> Values:
        """Returns the values that a request gives this stage alone."""
        return _apart(stage, request, self.declared)

    def specs(self) -> tuple[ParameterSpec, ...]:
        """Returns every declared parameter, once."""
        declared: dict[str, list[str]] = {}
        for folder in self.folders.values():
            stage = self.definition.stage(folder.stage)
            for name in chain(folder.defaults, folder.required):
                if name != ITEM or stage is None or not stage.is_mapped:
                    declared.setdefault(name, []).append(folder.stage)
        return tuple(
            ParameterSpec(
                name,
                tuple(stages),
                all(name in self.folders[one].defaults for one in stages),
                self.defaults.get(name),
                tuple(one.stage for one in self.folders.values() if name in one.outputs),
            )
            for name, stages in declared.items()
        )


def all_defaults(folders: Mapping[str, StageFolder]) -> dict[str, Json]:
    """Returns the defaults of all stages; of several for one name the first counts."""
    found: dict[str, Json] = {}
    for folder in folders.values():
        for name, value in folder.defaults.items():
            found.setdefault(name, value)
    return found


def _declared(folders: Mapping[str, StageFolder]) -> frozenset[str]:
    """Returns the names of all parameters that any stage declares."""
    return frozenset(
        name for one in folders.values() for name in chain(one.defaults, one.required)
    )


def values_of_definition(folders: Mapping[str, StageFolder], request: Values) -> Values:
    """Returns the values for the definition's own template; the first stage's counts."""
    declared = _declared(folders)
    apart: dict[str, Json] = {}
    for stage in folders:
        apart = {**_apart(stage, request, declared), **apart}
    return {**all_defaults(folders), **apart, **request}


def values_by_stage(
    folders: Mapping[str, StageFolder], request: Values
) -> dict[str, dict[str, Json]]:
    """Returns, by the id of each stage, its parameters that are known before anything runs.

    They are for the definition's own template. A stage is left out if its id means a parameter.
    """
    declared, found = _declared(folders), dict[str, dict[str, Json]]()
    for stage, folder in folders.items():
        is_value = not isinstance(request.get(stage, {}), dict)
        if not is_value and stage not in declared and stage not in JINJA_NAMES:
            own = (*folder.defaults, *folder.required)
            to_all = {name: request[name] for name in own if request.get(name) is not None}
            found[stage] = {**folder.defaults, **to_all, **_apart(stage, request, declared)}
    return found


def _apart(stage: str, request: Values, declared: frozenset[str]) -> Values:
    """Returns the values that a request gives this stage alone. There are none if a parameter
    has the name of the stage."""
    inside = request.get(stage)
    if not isinstance(inside, dict) or stage in declared:
        return {}
    return {name: value for name, value in inside.items() if value is not None}


def check_request(request: Values, findings: Findings, what: str = "the parameters") -> bool:
    """Says whether a request, or ``what`` else gives values, can be used; reports why not."""
    try:
        text = json.dumps(request, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())  # refuses halves of characters
    except (ValueError, TypeError, RecursionError):
        findings.error(
            "bad-parameters", f"{what} are not valid JSON", "send a JSON object", REQUEST
        )
        return False
    if size > PARAMETERS_BYTES_MAX:
        seen = f"{what} have more than {PARAMETERS_BYTES_MAX} bytes"
        hint = "put data into a file, and its path into a parameter"
        findings.error("parameters-too-large", seen, hint, REQUEST)
        return False
    if RESERVED.search(text) or "\0" in text or "\\u0000" in text:
        seen = "a parameter has a NUL character or one of U+F5EE0 and U+F5EE1"
        findings.error("reserved-character", seen, "remove it", REQUEST)
        return False
    if any(depth > DEPTH_MAX for depth in _depths(request)):
        seen = f"{what} are nested more than {DEPTH_MAX} deep"
        findings.error("nested-too-deeply", seen, "nest them less deeply", REQUEST)
        return False
    return True


def _depths(value: object, depth: int = 0) -> Iterator[int]:
    yield depth
    if depth <= DEPTH_MAX:
        inner: Iterable[object] = ()
        if isinstance(value, Mapping):
            inner = value.values()
        elif isinstance(value, list):
            inner = value
        for one in inner:
            yield from _depths(one, depth + 1)


def report_missing(
    source: ParameterSource, missing: Mapping[str, Iterable[str]], findings: Findings
) -> None:
    """Reports each parameter that a stage needs and nothing gives: the run is refused.

    ``missing`` are their names by stage.
    """
    for stage, names in missing.items():
        for name in names:
            lacks = "the parameter has no default, and no stage before this one provides it"
            if off := source.off_provider(stage, name):
                lacks = (
                    f"{off}, which provides the parameter, is switched off, and there is no "
                    "default"
                )
            seen = f"stage {stage} needs the parameter {name!r}: {lacks}"
            hint = f"give it with the request: -p {name}=VALUE, or in its parameters"
            findings.error("missing-parameter", seen, hint, REQUEST)


def report_unused(
    request: Mapping[str, object], known: Iterable[str], ids: Iterable[str], findings: Findings
) -> None:
    """Reports parameters that nothing looks at, probably misspelt; ``ids`` are of stages."""
    names = {*known}
    stages = {*ids} - names
    for name, value in request.items():
        if name in names:
            continue
        if name not in stages:
            others = stages if isinstance(value, dict) else ()
            _report_unused(name, "", [*names, *others], findings)
        elif not isinstance(value, dict):
            hint = f"{name} is a stage: give its parameters, a mapping: {name}: {{NAME: VALUE}}"
            _report_unused(name, "", (), findings, hint)
        else:
            for inner in [one for one in value if one not in names]:
                _report_unused(inner, f" of stage {name}", names, findings)


def refused_unused(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings about unused parameters as errors.

    They are for a request that a person typed, where a misspelt name must not pass.
    """
    return [
        replace(one, severity=Severity.ERROR)
        for one in findings
        if one.code == UNUSED_PARAMETER
    ]


def _report_unused(
    name: str, whose: str, names: Iterable[str], findings: Findings, hint: str = ""
) -> None:
    hint = hint or meant(name, sorted(names), "no stage declares or uses it")
    message = f"the parameter {name!r}{whose} changes nothing"
    findings.warning(UNUSED_PARAMETER, message, hint, REQUEST)


def warn_of_names(
    source: ParameterSource, used: Iterable[str], request: Values, findings: Findings
) -> None:
    """Warns of parameters that templates hide, and of those with different values.

    ``used`` are the names that the definition's own template uses.
    """
    for spec in source.specs():
        if spec.name in FIXED_NAMES:
            hidden = "is hidden: this name means something else in templates"
            seen = f"the parameter {spec.name!r} of {', '.join(spec.stages)} {hidden}"
            hint = f"write parameters['{spec.name}'], or rename it"
            place = source.folders[spec.stages[0]].places[spec.name]
            findings.warning("shadowed-parameter", seen, hint, place)
    taken = values_of_definition(source.folders, request)
    for name in used:
        values = _by_stage(name, source, request)
        different = [one for one, value in values.items() if value != taken[name]]
        if different and name not in request:
            same = next(one for one, value in values.items() if value == taken[name])
            given = any(name in source.given_apart(one, request) for one in values)
            word = "value" if given else "default"
            what = f"different {word}s of {name!r}; the definition uses the {word} of {same}"
            seen = f"{same} and {different[0]} have {what}"
            hint = f"give {name} once for all stages, or rename it in one of them"
            place = REQUEST if given else Position(source.folders[different[0]].folder)
            findings.warning("conflicting-defaults", seen, hint, place)


def _by_stage(name: str, source: ParameterSource, request: Values) -> dict[str, Json]:
    """Returns, by stage, the values that stages have of their own for one parameter."""
    found = {
        stage: {**folder.defaults, **source.given_apart(stage, request)}
        for stage, folder in source.folders.items()
    }
    return {stage: values[name] for stage, values in found.items() if name in values}


# The parameters of a request as people give them: `-p NAME=VALUE`, and a JSON or YAML file.

PAIR_ACCEPTED = "NAME=VALUE, the value as JSON or a string: -p nodes=4 -p site=north"


def read_parameters(texts: Iterable[str], file: Path | None) -> dict[str, object]:
    """Returns values by name; single ones (`-p NAME=VALUE`) count more than the file."""
    found: dict[str, object] = {} if file is None else dict(_from_file(file))
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadSetting("parameter", text, PAIR_ACCEPTED)
        found[name.strip()] = value
        with suppress(ValueError, RecursionError):
            found[name.strip()] = json.loads(value, parse_constant=str)
    return found


def _from_file(path: Path) -> dict[str, Json]:
    findings = Findings()
    name = str(path)
    try:
        with path.open("rb") as opened:
            content = opened.read(PARAMETERS_BYTES_MAX * 4 + 1)
    except OSError as error:
        raise BadSetting(
            "parameters", str(path), f"a JSON or YAML file that can be read ({error.strerror})"
        ) from error
    text = decoded(name, content, findings)
    node = read_plain(name, text, findings) if text is not None else None
    if node is not None and not isinstance(node, Fields):
        seen = f"{name} is not a mapping of names to values"
        hint = "write name: value, one on each line"
        findings.error("parameters-kind", seen, hint, Position(name, 1))
    if findings.has_errors or not isinstance(node, Fields):
        raise InvalidDefinition(name, findings.sorted())
    value = plain_value(node)
    assert isinstance(value, dict)
    return value
