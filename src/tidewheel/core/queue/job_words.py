"""What a job says to a server by itself, past its worker."""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.queue.access import KeptAnswer
from tidewheel.core.queue.lease import Holder


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWords:
    """What a job said with its own token; ``kept`` is the answer, if it may ask again."""

    holder: Holder
    text: str = ""
    output: str | None = None
    progress: float | None = None
    kept: KeptAnswer | None = None
