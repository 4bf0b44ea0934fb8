"""The refusal of a text or value that no calendar, interval or sequence can be made of."""

from __future__ import annotations

from tidewheel.errors import Refused


class BadCycling(Refused):
    """A cycle point, interval, offset, recurrence or point format that cannot be used."""

    code = "bad_cycling"

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message, hint)

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message
