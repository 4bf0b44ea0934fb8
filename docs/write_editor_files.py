"""Writes docs/editors/ from the tables of items and keys; a test compares the two."""

from __future__ import annotations

import json
from pathlib import Path

from tidewheel.formats.flow_cylc.editor_files import grammar, json_schema
from tidewheel.formats.sip.keys import sip_json_schema

FOLDER = Path(__file__).with_name("editors")


def files() -> dict[str, str]:
    """The text of each file by its name."""
    made = {
        "flow.cylc.schema.json": json_schema(),
        "flow-cylc.tmLanguage.json": grammar(),
        "sip.schema.json": sip_json_schema(),
    }
    return {
        name: json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        for name, content in made.items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
