"""How the table of items is written: sections know their entries, items their kind and use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidewheel.formats.flow_cylc.values import READERS, Kind


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """One item that is accepted."""

    kind: Kind
    default: object = None
    choices: tuple[str, ...] = ()
    # Why it has no effect in tidewheel; empty for an item that has one.
    idle_because: str = ""
    read: Callable[[str], object] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "read", READERS[self.kind])


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """One section that is accepted; ``other`` is for names that the person chooses."""

    entries: Mapping[str, ItemSpec | SectionSpec] = field(default_factory=dict)
    other: ItemSpec | SectionSpec | None = None
    idle_because: str = ""


def idle(because: str, kind: Kind = Kind.TEXT) -> ItemSpec:
    """An item that a current Cylc accepts and that has no effect here."""
    return ItemSpec(kind, idle_because=because)


TEXT = ItemSpec(Kind.TEXT, "")
TEXTS = ItemSpec(Kind.TEXTS, ())
DURATION = ItemSpec(Kind.DURATION)
DURATIONS = ItemSpec(Kind.DURATIONS, ())
BOOLEAN = ItemSpec(Kind.BOOLEAN)
POINT = ItemSpec(Kind.POINT, "")
