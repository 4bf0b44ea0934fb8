"""A known bug, as the change of source that puts it in."""

from pathlib import Path
from typing import NamedTuple


class Edit(NamedTuple):
    """Replace ``old``, which stands in ``file`` exactly once."""

    file: str
    old: str
    new: str

    def apply(self, package: Path) -> None:
        path = package / self.file
        source = path.read_text(encoding="utf-8")
        found = source.count(self.old)
        assert found == 1, (
            f"{self.file} holds this text {found} times, it must be once; if the source has "
            f"moved, write the bug anew for it:\n{self.old}"
        )
        path.write_text(source.replace(self.old, self.new), encoding="utf-8")


class Bug(NamedTuple):
    """One bug that the simulation must find."""

    name: str
    edits: tuple[Edit, ...]
    # Where to begin: a rare one is known to show soon after its own, and on the way there
    # nothing would be learnt but patience.
    seed: int | None = None
