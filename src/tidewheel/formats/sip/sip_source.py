"""The files of one definition: its own and those of its stages, by their paths.

This is what is registered, and all that is read afterwards: a run needs no folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STAGES_FOLDER = "stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class SipSource:
    """Contents by path from the folder of the definition; `file` is the definition itself."""

    file: str
    files: Mapping[str, bytes]
    executable: frozenset[str] = frozenset()
    # Folders that were seen, for advice about those that are missing.
    folders: frozenset[str] = field(default=frozenset(), compare=False)
    _by_folder: Mapping[str, Mapping[str, bytes]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, dict[str, bytes]] = {}
        for path, content in self.files.items():
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, {})[name] = content
            while folder := folder.rpartition("/")[0]:
                found.setdefault(folder, {})
        object.__setattr__(self, "_by_folder", found)
        object.__setattr__(self, "folders", self.folders | (found.keys() - {""}))

    def folder_of(self, stage: str, version: str) -> str | None:
        """The folder of a stage; None if there is none."""
        wanted = folders_for(stage, version)
        return next((folder for folder in wanted if folder in self.folders), None)

    def inside(self, folder: str) -> Mapping[str, bytes]:
        """The files that lie directly in a folder, by name."""
        return self._by_folder.get(folder, {})


def folders_for(stage: str, version: str) -> tuple[str, str]:
    """Where a stage belongs, and where it is tolerated."""
    return f"{STAGES_FOLDER}/{stage}/{version}", f"{stage}/{version}"
