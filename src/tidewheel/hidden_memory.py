"""Hides the memory of this process from others of its user.

It stands alone, and imports next to nothing, because a service does this before all else.
"""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Lets no process of this user read the memory of this one, or trace it; Linux only."""
    if sys.platform.startswith("linux"):
        import ctypes  # noqa: PLC0415 - few commands need it

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
