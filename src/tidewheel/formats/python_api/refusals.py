"""Refuses a statement of a definition in Python, and finds the line that is to blame.

What Python itself would refuse, such as an operator on the wrong thing, is refused at once.
What a definition says wrongly is collected, and refused all together (``InvalidDefinition``).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tidewheel.core.graph.findings import Position
from tidewheel.errors import Refused

_PACKAGE = f"{Path(__file__).parent}{os.sep}"


class BadStatement(Refused):
    """A statement that cannot be meant as it is written; nothing was recorded."""

    code = "bad_statement"

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint, self.position = message, hint, written_at()
        super().__init__(f"{self.position}: {message}. {hint}")


def written_at() -> Position:
    """Returns the line outside of this package that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Position(frame.f_code.co_filename, frame.f_lineno)
