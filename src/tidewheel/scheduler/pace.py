"""How soon a scheduler decides again: at once, unless a run is to keep the pace of Cylc.

Cylc looks at its tasks once a second, and existing workflows rely on it without saying so: a
job that calls `cylc trigger` expects that what it triggers has not been overtaken by the rest
of its own flow while the command was starting. Under `--compat cylc8` a run decides twice
a second, which is slow enough for such a command to arrive, and still quicker than Cylc. Where
nothing in a definition calls such a command, nobody can be overtaken.
"""

from __future__ import annotations

import re

from tidewheel.core.operator.definition import RunOptions, StoredDefinition

CYLC_PACE_SECONDS = 0.5

_CALL = re.compile(rb"\b(cylc|tidewheel)[ _]")  # cylc__job__… waits for the log of the run


def at_once(_options: RunOptions, _definition: StoredDefinition) -> float:
    """Whenever something happens."""
    return 0.0


def as_compatible(options: RunOptions, definition: StoredDefinition) -> float:
    """The least time between two passes of a run."""
    return CYLC_PACE_SECONDS if options.compat and _commands_itself(definition) else 0.0


def _commands_itself(definition: StoredDefinition) -> bool:
    texts = (definition.text.encode(), *(file.content for file in definition.files))
    return any(_CALL.search(text) for text in texts)
