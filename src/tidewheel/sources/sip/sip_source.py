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

    def folder_of(self, stage: str, version: str) -> str | None:
        """The folder of a stage; None if there is none."""
        for folder in folders_for(stage, version):
            if folder in self.folders or any(
                one.startswith(f"{folder}/") for one in self.files
            ):
                return folder
        return None

    def inside(self, folder: str) -> dict[str, bytes]:
        """The files that lie directly in a folder, by name."""
        lead = f"{folder}/"
        return {
            path.removeprefix(lead): content
            for path, content in self.files.items()
            if path.startswith(lead) and "/" not in path.removeprefix(lead)
        }


def folders_for(stage: str, version: str) -> tuple[str, str]:
    """Where a stage belongs, and where it is tolerated."""
    return f"{STAGES_FOLDER}/{stage}/{version}", f"{stage}/{version}"
