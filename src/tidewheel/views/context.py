"""Holds what every view of a run is given: folders, definitions, the past, its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.services.workflow_state import DefinitionOf
from tidewheel.views.past import FORGOTTEN_MAX, PastMoment, Pasts, Then
from tidewheel.views.snapshot import RunSnapshot, gather


class ViewContext(NamedTuple):
    """Says where the files of runs are, and how definitions and the past are read."""

    home: Path
    definition_of: DefinitionOf
    pasts: Pasts

    async def gather(self, store: Store, view: RunView, *, recall: bool = True) -> RunSnapshot:
        """Everything about a run at one moment."""
        return await gather(
            store, view, self.home, recall=recall, definition_of=self.definition_of
        )

    async def then(
        self,
        store: Store,
        view: RunView,
        moment: PastMoment,
        forgotten_max: int = FORGOTTEN_MAX,
    ) -> Then:
        """Everything about a run at an earlier moment."""
        restored = await self.definition_of(view)
        return await self.pasts.then(store, view, restored, moment, forgotten_max)


def read_text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name) or ""
    if not isinstance(value, str | int):
        raise Refused(f"{name} must be a text, not {json.dumps(value)}")
    return str(value)


def read_texts(arguments: Arguments, name: str) -> list[str]:
    value = arguments.get(name) or []
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise Refused(f"{name} must be a list of texts, not {json.dumps(value)}")
    return list(value)


def read_number(arguments: Arguments, name: str) -> int | None:
    value = arguments.get(name)
    if value is not None and (
        not isinstance(value, int) or isinstance(value, bool) or value < 0
    ):
        raise Refused(f"{name} must be a number from 0 on, not {json.dumps(value)}")
    return value
