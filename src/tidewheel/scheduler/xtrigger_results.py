"""What calls of xtriggers have found, for tasks that come later and for the next process.

A row is handed on in two steps: what is noted after the core was told of a pass belongs to the
next one. A message that has been used up since then must not be forgotten before the core knows
who was let go by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tidewheel.core.operator.requests import XtriggerResult


class XtriggerResults:
    """The results of satisfied calls, oldest first, and the rows that the store lacks."""

    def __init__(self, remembered_max: int) -> None:
        self._remembered_max = remembered_max
        self._known: dict[str, Mapping[str, str]] = {}  # by signature
        self._noted: dict[str, XtriggerResult] = {}
        self._due: dict[str, XtriggerResult] = {}  # with the batch of this pass

    def find(self, signature: str) -> Mapping[str, str] | None:
        """What a call has found; None if it was not satisfied yet."""
        return self._known.get(signature)

    def remember(self, signature: str, results: Mapping[str, str]) -> None:
        """Of too many the oldest is forgotten."""
        self._known[signature] = results
        self.note(XtriggerResult(signature, json.dumps(dict(results))))
        while len(self._known) > self._remembered_max:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self.note(XtriggerResult(oldest, ""))

    def note(self, row: XtriggerResult) -> None:
        """The store has to know it."""
        self._noted[row.signature] = row

    def restore(self, row: XtriggerResult) -> None:
        """What an earlier process knew."""
        self._known[row.signature] = json.loads(row.result)

    def close_pass(self) -> None:
        """What was noted so far belongs to this pass."""
        self._due |= self._noted
        self._noted = {}

    def take_rows(self) -> list[XtriggerResult]:
        """Those of this pass."""
        rows, self._due = self._due, {}
        return list(rows.values())
