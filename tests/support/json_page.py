"""docs/json.md: the example under each heading, and the shape of a document."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


def promised() -> dict[str, object]:
    """What the page says that a command answers."""
    found = re.findall(r"^## (.+?)\n.*?```json\n(.*?)```", PAGE.read_text("utf-8"), re.M | re.S)
    return {heading: json.loads(example) for heading, example in found}


def shape(document: object, free: Collection[str], name: str = "") -> object:
    """The keys, all the way down; of a list, those of its first element that has any.

    What is in ``free`` depends on what there is to say.
    """
    if isinstance(document, dict) and name not in free:
        return {key: shape(value, free, key) for key, value in sorted(document.items())}
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return [shape(document[0], free)]
    return None
