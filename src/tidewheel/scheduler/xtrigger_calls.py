"""Which call a task waits for: an xtrigger with the words of that task put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidewheel.core.graph.definition import XtriggerDef


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What arguments of xtriggers may say about the run."""

    run: str
    user: str
    directory: str
    debug: bool = False

    def words(self, point: str, name: str) -> dict[str, object]:
        """Cylc's names, old ones included."""
        share = f"{self.directory}/share"
        return {
            "point": point,
            "name": name,
            "id": f"{point}/{name}",
            "debug": self.debug,
            "user_name": self.user,
            **dict.fromkeys(("workflow", "workflow_name", "suite_name"), self.run),
            **dict.fromkeys(("workflow_run_dir", "suite_run_dir"), self.directory),
            **dict.fromkeys(("workflow_share_dir", "suite_share_dir"), share),
        }


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments. Who waits for the same call waits together."""

    function: str
    arguments: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()

    @property
    def signature(self) -> str:
        named = (f"{name}={value}" for name, value in sorted(self.keywords))
        return f"{self.function}({', '.join([*map(str, self.arguments), *named])})"


def call_for(xtrigger: XtriggerDef, words: Mapping[str, object]) -> Call:
    """The call of one task."""
    return Call(
        xtrigger.function,
        tuple(_filled(value, words) for value in xtrigger.arguments),
        tuple((name, _filled(value, words)) for name, value in xtrigger.keywords),
    )


def _filled(value: object, words: Mapping[str, object]) -> object:
    if not isinstance(value, str):
        return value
    try:
        return value % words
    except (KeyError, TypeError, ValueError):  # a percent sign that is meant as one
        return value
