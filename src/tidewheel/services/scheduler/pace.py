"""How soon a scheduler decides again: at once, unless a run is to keep the pace of Cylc.

Cylc looks at its tasks once a second, and existing workflows rely on it without saying so: a
job that calls `cylc trigger` expects that what it triggers has not been overtaken by the rest
of its own flow while the command was starting. Under `--compat cylc8` a run decides twice
a second, which is slow enough for such a command to arrive, and still quicker than Cylc.
"""

from __future__ import annotations

from tidewheel.core.runs.definition import RunOptions

CYLC_PACE_SECONDS = 0.5


def at_once(_options: RunOptions) -> float:
    """Whenever something happens."""
    return 0.0


def as_compatible(options: RunOptions) -> float:
    """The least time between two passes of a run with these options."""
    return CYLC_PACE_SECONDS if options.compat else 0.0
