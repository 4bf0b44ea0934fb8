"""How far runs are, remembered until they change: a list of a thousand is looked into once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

Document = dict[str, Any]
Look = Callable[[str], Awaitable[Document | None]]

LOOKS_MAX = 50  # for one list: each reads a whole run
KNOWN_MAX = 5_000
_OVER = ("completed", "stopped")


class KnownSummaries:
    """Those of the runs that were listed last."""

    def __init__(self, known_max: int = KNOWN_MAX) -> None:
        self._known_max = known_max
        self._known: dict[int, tuple[Hashable, Document | None]] = {}

    async def added(
        self, runs: list[Document], look: Look, looks_max: int = LOOKS_MAX
    ) -> tuple[list[Document], int]:
        """The runs, each with its `summary`, and how many are left to be looked into.

        What somebody may have to mend comes first; whoever asks again is told more.
        """
        unknown = [run for run in runs if self._at_hand(run) is None]
        unknown.sort(key=lambda run: run["status"] in _OVER)
        for run in unknown[:looks_max]:
            # As it was listed: what happens meanwhile is looked for the next time.
            self._keep(run, await look(run["name"]))
        found = [(run, self._at_hand(run)) for run in runs]
        shown = [run | {"summary": None if one is None else one[1]} for run, one in found]
        return shown, max(0, len(unknown) - looks_max)

    def _at_hand(self, run: Document) -> tuple[Hashable, Document | None] | None:
        known = self._known.get(run["number"])
        return known if known is not None and known[0] == _version(run) else None

    def _keep(self, run: Document, summary: Document | None) -> None:
        self._known.pop(run["number"], None)
        self._known[run["number"]] = (_version(run), summary)
        while len(self._known) > self._known_max:
            del self._known[next(iter(self._known))]


def _version(run: Document) -> Hashable:
    """Every batch leaves its time in the row of its run; what cannot be read may be mended."""
    return run["status"], run["updated_at"], run["definition"], run["driven"]
