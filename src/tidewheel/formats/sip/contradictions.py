"""Finds stages that can never begin; it stands alone because validation.py has its full length.

What they wait for excludes itself. A stage that waits for another, whatever for, waits for all
that the other one waits for: nothing has a result before it has begun. So what must have become
of earlier stages is gathered along the way, and one that needs both the success and the failure
of one is told of, once, where the two meet. Sets are bits of a number: ten thousand stages may
wait in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.sip.field_reader import pair
from tidewheel.formats.sip.model import SipDefinition, Stage, StageCondition, StageDependency
from tidewheel.lazy_dataclasses import NamedTuple

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
        "all dependencies must be met: remove one of the two, or make two stages; "
        f"{finished} is met both by success and by failure",
        second[0].position,
    )


def _part(name: str, bit: int, through: StageDependency, needs: _Needs) -> str:
    if through.stage == name:
        return f"it needs {name} {through.condition.value}"
    end = StageCondition.COMPLETE if needs.succeeded & bit else StageCondition.FAILED
    return f"{through.stage}, which it waits for, needs {name} {end.value}"
