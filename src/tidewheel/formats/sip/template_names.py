"""What templates of stages know: the names of their own stage, and every stage by its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from tidewheel.formats.sip.model import Stage
from tidewheel.formats.sip.names import FIXED_NAMES, JINJA_NAMES
from tidewheel.formats.sip.parameters import ParameterSource, StageValues, Values
from tidewheel.formats.sip.places import Json
from tidewheel.formats.sip.rendering import Names, Path

_PARAMETERS = "parameters"
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class SharedNames:
    """Every stage, for whoever looks at another one."""

    stages: Mapping[str, dict[str, Json]]
    # Parameters that have no value yet, by stage: what people read in their places.
    unknown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def names(self) -> Names:
        """Each by its id, and all of them as `stages`."""
        by_id = {name: one for name, one in self.stages.items() if name not in JINJA_NAMES}
        ways: dict[Path, str] = {}
        for stage in self.unknown:
            ways |= self.ways_to(stage, ("stages", stage))
            ways |= self.ways_to(stage, (stage,)) if stage in by_id else {}
        return Names({**by_id, "stages": dict(self.stages)}, ways)

    def ways_to(self, stage: str, lead: Path) -> dict[Path, str]:
        """Of a stage that is known under this name."""
        found = self.unknown.get(stage, {})
        return {(*lead, _PARAMETERS, name): text for name, text in found.items()}


def shared_names(
    source: ParameterSource, request: Values, outputs: Mapping[str, Values] | None = None
) -> SharedNames:
    """As a request makes them, and once a stage is due the outputs of those before it."""
    stages: dict[str, dict[str, Json]] = {}
    unknown: dict[str, Mapping[str, str]] = {}
    for stage in source.definition.stages:
        values = source.values_for(stage, request, outputs)
        folder = source.folders.get(stage.id)
        declared = {*chain(folder.defaults, folder.required)} if folder else set()
        about: dict[str, Json] = {
            "id": stage.id,
            "version": stage.version,
            "type": stage.type.value,
            "timeout": _shortest(stage.timeout_seconds),
            _PARAMETERS: _only(declared, values.known),
        }
        if outputs is not None:  # then whatever has no value is a mistake
            about["outputs"] = dict(outputs.get(stage.id, {}))
        elif shown := _only(declared, values.shown):
            unknown[stage.id] = shown
        stages[stage.id] = about
    return SharedNames(stages, unknown)


def own_names(
    stage: Stage,
    values: StageValues,
    shared: SharedNames,
    args: Json,
    declared: frozenset[str],
) -> tuple[dict[str, Json], dict[Path, str]]:
    """Names of one stage's templates, and the ways to those without a value.

    ``declared`` are parameters; what a request gives under the id of a stage is none.
    """
    known = dict(values.known)
    names = {name: value for name, value in known.items() if name not in FIXED_NAMES}
    ways: dict[Path, str] = shared.ways_to(stage.id, ("stage",))
    for name, about in shared.stages.items():
        given = names.get(name)
        if isinstance(given, dict) and name not in declared:
            names[name] = {**about, **given}
            if isinstance(given.get(_PARAMETERS, {}), dict):
                ways |= shared.ways_to(name, (name,))
    names |= {_PARAMETERS: known, "stage": shared.stages[stage.id], "args": args}
    ways |= {(_PARAMETERS, name): text for name, text in values.shown.items()}
    ways |= {(name,): text for name, text in values.shown.items() if name not in FIXED_NAMES}
    return names, ways


def _only(names: set[str], values: Mapping[str, _Value]) -> dict[str, _Value]:
    return {name: value for name, value in values.items() if name in names}


def _shortest(seconds: float | None) -> float | None:
    """60, not 60.0: templates print it."""
    return int(seconds) if seconds is not None and seconds.is_integer() else seconds
