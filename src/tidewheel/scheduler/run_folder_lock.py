"""Locks the folder of a run: one that another run has left, or uses, is not for a new one.

Names are unique in a store, and folders belong to a home: a store that was begun anew, another
one with the same home, or a run whose rows are gone give a name twice. Its logs would be mixed
with those of the other, and the other's scripts would be taken for its own.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.runners.job_directory import make_private_directory, write_whole
from tidewheel.services.paths import run_directory

OWNER = Path("log", "config", "run")
STORE = Path("log", "config", "store")  # which store knows it, by its id
_NUMBERED = re.compile(r"run([0-9]{1,9})")


def owner_text(run: RunView) -> str:
    """Returns what the folder of a run says about its owner."""
    return f"{run.number} {run.created_at!r}\n"


def take_folder(run: RunView, home: Path) -> None:
    """Writes down to which run the folder belongs; refused if it is another's."""
    folder = run_directory(home, run.name)
    path, mine = folder / OWNER, owner_text(run)
    try:
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if not there:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, mine.encode(), mode=0o600)
    except OSError:  # whoever prepares the folder will say it
        return
    if there not in ("", mine):
        raise Refused(
            f"the folder {folder} belongs to another run of this name, which this store does "
            "not know; move it away, or name this one otherwise: --new --run-name NAME"
        )


def note_store(folder: Path, store_id: str) -> None:
    """Writes down which store knows the run of this folder: several may use one home."""
    with suppress(OSError):
        make_private_directory((folder / STORE).parent)
        write_whole(folder / STORE, store_id.encode(), mode=0o600)


def last_numbered(workflow: str, home: Path) -> int:
    """Returns the highest N of the folders called WORKFLOW/runN; 0 if there is none."""
    found = [0]
    with suppress(OSError):
        for path in run_directory(home, workflow).iterdir():
            match = _NUMBERED.fullmatch(path.name)
            found += [int(match[1])] if match else []
    return max(found)
