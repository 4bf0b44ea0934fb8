"""Says of which lists the elements of stages with `for_each` are made, and judges these lists.

A list is known before the run (written in the definition, or a parameter), or it is an output
of a stage before. `for_each: {{ beams }}` is the first if the request or a default gives
`beams`, else the second. A stage may also run over the elements of another: each after its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from tidewheel.core.graph.definition import MappedOver
from tidewheel.core.graph.findings import Findings, meant
from tidewheel.formats.growth import grow
from tidewheel.formats.sip.model import (
    ITEM,
    LIST_PREFIX,
    PARAMETERS_BYTES_MAX,
    ListGiven,
    ListReturned,
    ListToCome,
    SameElements,
    SipDefinition,
    Stage,
)
from tidewheel.formats.sip.parameters import StagePart
from tidewheel.formats.sip.placeholders import RESERVED
from tidewheel.formats.sip.stage_folder import StageFolder

ELEMENTS_TOGETHER_MAX = 100_000  # of all stages with for_each
STAGES_MAX = 200  # with for_each, in one definition
CODE = "for-each"


def resolved_lists(
    definition: SipDefinition, folders: Mapping[str, StageFolder]
) -> SipDefinition:
    """Returns the definition with the stages that return lists which no request gives."""
    stages = tuple(_resolved(one, definition, folders) for one in definition.stages)
    return replace(definition, stages=stages)


def _resolved(
    stage: Stage, definition: SipDefinition, folders: Mapping[str, StageFolder]
) -> Stage:
    if not isinstance(stage.for_each, ListToCome):
        return stage
    name = stage.for_each.parameter
    before = (folders[one] for one in definition.upstream(stage.id) if one in folders)
    found = next((one.stage for one in before if name in one.outputs), None)
    return stage if found is None else replace(stage, for_each=ListReturned(found, name))


def mapped_over(definition: SipDefinition, stage: Stage) -> MappedOver:
    """Returns of which list, and of which task's, the elements of a stage are made.

    A list that is known has a task of its own, which waits for what the stage waits for.
    """
    first, found = definition.list_of(stage)
    limits = first.elements_max
    if isinstance(found, ListReturned):
        over = MappedOver(ITEM, found.stage, found.output, limits)
    elif isinstance(found, ListGiven):
        size = len(found.items)
        over = MappedOver(ITEM, LIST_PREFIX + first.id, ITEM, size, size)
    else:
        over = MappedOver(ITEM, LIST_PREFIX + first.id, ITEM, limits)
    return replace(over, max_item=f"for_each_max of stage {first.id}")


def first_part(definition: SipDefinition, stage: Stage) -> StagePart:
    """Returns the part of a stage that stands for all: its first element, if that is known."""
    found = definition.list_of(stage)[1] if stage.is_mapped else None
    if isinstance(found, ListGiven) and found.items:
        return StagePart(stage=stage, index=0, item=found.items[0])
    return StagePart(stage=stage)


def other_parts(
    definition: SipDefinition, first: StagePart, count_max: int
) -> tuple[StagePart, ...]:
    """Returns the other elements of a stage that are known, so many at most."""
    if first.index is None:
        return ()
    found = definition.list_of(first.stage)[1]
    assert isinstance(found, ListGiven)
    others = found.items[1 : count_max + 1]
    grow(len(others))
    return tuple(
        StagePart(stage=first.stage, index=index, item=item)
        for index, item in enumerate(others, 1)
    )


# What is wrong with lists.


def check_lists(
    definition: SipDefinition,
    folders: Mapping[str, StageFolder],
    findings: Findings,
    obstacles: Findings,
) -> None:
    """Reports lists that cannot be had; the definition must have no circles.

    What a request gives, and stages that it switches off, are obstacles: they refuse the run.
    """
    mapped = [one for one in definition.stages if one.for_each is not None]
    if len(mapped) > STAGES_MAX:
        seen = f"{len(mapped)} stages have for_each; at most {STAGES_MAX} are accepted"
        hint = "split the workflow"
        findings.error("too-many-stages", seen, hint, mapped[0].elements_position)
        return
    for stage in definition.stages:
        match stage.for_each:
            case ListGiven(items):
                _check_given(stage, items, obstacles)
            case ListReturned():
                _check_returned(stage, stage.for_each, definition, folders, findings)
            case SameElements(other):
                _check_same(stage, other, definition, findings)
            case _:
                pass
        if stage.is_mapped:
            _check_on(stage, definition, obstacles)
    _check_names(definition, findings)


def _check_given(stage: Stage, items: tuple[object, ...], obstacles: Findings) -> None:
    where = stage.elements_position
    text = json.dumps(items, ensure_ascii=False)
    if len(items) > stage.elements_max:
        seen = f"stage {stage.id} runs for each of {len(items)} elements"
        hint = f"at most {stage.elements_max} are accepted (for_each_max): split the list"
        obstacles.error("too-many-elements", seen, hint, where)
    elif len(text.encode()) > PARAMETERS_BYTES_MAX:
        seen = f"the list of stage {stage.id} has more than {PARAMETERS_BYTES_MAX} bytes"
        hint = "put data into files, and their names into the list"
        obstacles.error("list-too-large", seen, hint, where)
    elif RESERVED.search(text) or "\\u0000" in text.replace("\\\\", ""):
        seen = f"the list of stage {stage.id} has a NUL character, U+F5EE0 or U+F5EE1"
        obstacles.error("reserved-character", seen, "remove it", where)


def _check_returned(
    stage: Stage,
    returned: ListReturned,
    definition: SipDefinition,
    folders: Mapping[str, StageFolder],
    findings: Findings,
) -> None:
    source, where = definition.stage(returned.stage), stage.elements_position
    if source is None:
        return  # an unknown stage that it depends on, and reported as that
    if source.for_each is not None:
        seen = f"stage {stage.id} runs for each of {source.id}.{returned.output}"
        hint = (
            f"{source.id} itself runs for each element of a list: write for_each: {source.id} "
            "to run once after each element, or let a stage between them return one list"
        )
        findings.error(CODE, seen, hint, where)
    folder = folders.get(source.id)
    if folder is not None and folder.is_whole and returned.output not in folder.outputs:
        seen = (
            f"stage {stage.id} runs for each of {source.id}.{returned.output}, which is not "
            f"an output of {source.id}"
        )
        advice = f"name it in {folder.folder}/outputs.yaml"
        findings.error(CODE, seen, meant(returned.output, folder.outputs, advice), where)


def _check_same(
    stage: Stage, other: str, definition: SipDefinition, findings: Findings
) -> None:
    source = definition.stage(other)
    if source is None or source.for_each is not None:
        return
    seen = f"stage {stage.id} runs for each of {other}, but {other} has no for_each"
    hint = (
        f"write {other}.OUTPUT for a list that it returns, or {{{{ {other} }}}} for a parameter"
    )
    findings.error(CODE, seen, hint, stage.elements_position)


def _check_on(stage: Stage, definition: SipDefinition, obstacles: Findings) -> None:
    named = stage.for_each
    if not isinstance(named, ListReturned | SameElements):
        return
    source = definition.stage(named.stage)
    if source is not None and not source.is_on:
        seen = f"stage {stage.id} runs for each element from {source.id}, which is switched off"
        hint = f"give {stage.id} the same `when` as {source.id}"
        obstacles.error(CODE, seen, hint, stage.elements_position)


def _check_names(definition: SipDefinition, findings: Findings) -> None:
    """Reports stages with names of elements, and elements that are too many together."""
    mapped = [one for one in definition.stages if one.is_mapped]
    count = sum(mapped_over(definition, one).elements_max for one in mapped)
    if count > ELEMENTS_TOGETHER_MAX:
        seen = f"stages with for_each have up to {count} elements in total"
        hint = f"at most {ELEMENTS_TOGETHER_MAX} are accepted: give them a smaller for_each_max"
        findings.error("too-many-elements", seen, hint, mapped[0].elements_position)
    for stage in definition.stages:
        head = stage.id.rstrip("0123456789")
        other = definition.stage(head.removesuffix(f"_{ITEM}"))
        if other is not None and other.is_mapped and other.id != stage.id != head:
            seen = f"stage {stage.id} has the name of an element of {other.id}"
            findings.error("bad-name", seen, "rename it", stage.position)
