"""Writes web/src/ui/palette.json: the looks of states as the command line has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tidewheel.cli.palette import BLOCK_STATUSES, PALETTE, RUN_STATUSES, TASK_STATES, Look

PLACE = Path(__file__).parent / "src" / "ui" / "palette.json"


def text() -> str:
    """All tables, by the word that every view uses."""
    tables = {
        "tasks": _table(TASK_STATES),
        "runs": _table(RUN_STATUSES),
        "blocks": _table(BLOCK_STATUSES),
        "statuses": _table({status.value: look for status, look in PALETTE.items()}),
    }
    return json.dumps(tables, indent=2, ensure_ascii=False) + "\n"


def _table(looks: Mapping[str, Look]) -> dict[str, dict[str, str]]:
    return {
        word: {"colour": look.web_colour, "shape": look.shape} for word, look in looks.items()
    }


if __name__ == "__main__":
    PLACE.write_text(text())
