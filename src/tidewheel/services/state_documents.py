"""Which tasks of a run have come so far, as a document: `cylc workflow-state` asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.ports.runs import RunStore
from tidewheel.services.definitions.snapshot import RestoredDefinition, restore
from tidewheel.services.paths import run_directory
from tidewheel.services.workflow_state import DefinitionOf, StateRow, answer, question_of_id

Document = dict[str, object]


def definitions_of(store: RunStore, home: Path) -> DefinitionOf:
    """How the definition of a run is read."""

    async def definition_of(run: RunView) -> RestoredDefinition:
        definition = await store.definition(run.definition)
        return restore(definition, run.options, run_directory(home, run.name))

    return definition_of


async def state_document(
    store: RunStore, definition_of: DefinitionOf, arguments: Mapping[str, object]
) -> Document:
    """`run`, `id` (POINT/NAME:SELECTOR), `offset`, `flow`, `triggers`, `messages`."""
    texts = {name: arguments.get(name) or "" for name in ("run", "id", "offset")}
    flow = arguments.get("flow")
    if not all(isinstance(one, str) for one in texts.values()):
        raise Refused("run, id and offset must be texts")
    if flow is not None and not isinstance(flow, int):
        raise Refused("flow must be a number")
    question = question_of_id(
        f"{texts['run']}//{texts['id']}",
        offset=str(texts["offset"]),
        flow=flow,
        is_trigger=arguments.get("triggers") is True,
        is_message=arguments.get("messages") is True,
    )
    found = await answer(store, question, definition_of)
    return {
        "run": found.run,
        "reason": found.reason,
        "selector": question.selector,
        "tasks": [_row(row) for row in found.rows],
    }


def _row(row: StateRow) -> Document:
    return {
        "id": f"{row.point}/{row.name}",
        "point": row.point,
        "name": row.name,
        "state": row.status,
        "flows": sorted(row.flows),
        "outputs": dict(row.outputs),
    }
