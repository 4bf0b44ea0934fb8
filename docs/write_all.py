"""Writes every generated page, picture and schema again; `make docs` does so."""

from __future__ import annotations

import runpy
from pathlib import Path

WRITERS = (
    "write_cli_page",
    "write_editor_files",
    "write_reference",
    "write_python_page",
    "write_pictures",
    "write_schema",
)

if __name__ == "__main__":
    for name in WRITERS:
        runpy.run_path(str(Path(__file__).with_name(f"{name}.py")), run_name="__main__")
