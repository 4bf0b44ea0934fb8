"""Which run is meant where none was named: the only one there is, or the only one driven."""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.errors import Refused

RUNS_NAMED_MAX = 5


def only_run(views: Sequence[RunView], now: Instant) -> RunView:
    """Refused with the names if there are several."""
    if not views:
        raise Refused("there is no run in this store; start one: tidewheel run DIR")
    driven = [view for view in views if view.is_driven(now)]
    found = views if len(views) == 1 else driven
    if len(found) == 1:
        return found[0]
    names = [view.name for view in found or views]
    more = f" and {len(names) - RUNS_NAMED_MAX} more" if len(names) > RUNS_NAMED_MAX else ""
    raise Refused(
        f"which run? There are {', '.join(names[:RUNS_NAMED_MAX])}{more}; "
        "name one as RUN: its name, its number or the beginning of its name"
    )
