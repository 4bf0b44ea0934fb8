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


class AskedView(NamedTuple):
    """Is a view that is asked for: of which run, with arguments as they come from JSON."""

    store: Store
    context: ViewContext
    run: RunView
    arguments: Arguments

    async def snapshot(self, *, recall: bool = True) -> RunSnapshot:
        """Returns everything about the run at one moment."""
        home, definition_of, _ = self.context
        return await gather(
            self.store, self.run, home, recall=recall, definition_of=definition_of
        )

    async def then(self, moment: PastMoment, forgotten_max: int = FORGOTTEN_MAX) -> Then:
        """Returns everything about the run at an earlier moment."""
        restored = await self.context.definition_of(self.run)
        pasts = self.context.pasts
        return await pasts.then(self.store, self.run, restored, moment, forgotten_max)

    def text(self, name: str) -> str:
        return read_text(self.arguments, name)

    def number(self, name: str) -> int | None:
        return read_number(self.arguments, name)

    def texts(self, name: str) -> list[str]:
        value = self.arguments.get(name) or []
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
            raise Refused(f"{name} must be a list of texts, not {json.dumps(value)}")
        return list(value)


def read_text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name) or ""
    if not isinstance(value, str | int):
        raise Refused(f"{name} must be a text, not {json.dumps(value)}")
    return str(value)


def read_number(arguments: Arguments, name: str) -> int | None:
    value = arguments.get(name)
    if value is not None and (
        not isinstance(value, int) or isinstance(value, bool) or value < 0
    ):
        raise Refused(f"{name} must be a number from 0 on, not {json.dumps(value)}")
    return value
