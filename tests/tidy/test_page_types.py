"""The page's types of what travels are those of `api`: web/write_types.py writes them."""

import runpy
from pathlib import Path

WRITER = Path(__file__).parents[2] / "web" / "write_types.py"


def test_the_types_of_the_page_are_written_from_the_types_of_the_api():
    writer = runpy.run_path(str(WRITER))
    said = writer["FILE"].read_text("utf-8")
    assert said == writer["text"](), "run: .venv/bin/python web/write_types.py"
