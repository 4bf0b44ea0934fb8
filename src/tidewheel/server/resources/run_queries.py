"""What may be asked about runs: the parameters of each view."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.server.resources.logs import PartQuery
from tidewheel.server.wire.validation import In

WAIT_SECONDS_MAX = 25.0  # for more of a log; less than a request may take
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Batch = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class RunsQuery(In):
    """Which runs; of summaries that are not known yet, 50 come with each request."""

    workflow: str | None = None
    limit: Count = 100
    before: Number | None = None
    summary: bool = False


class TasksQuery(In):
    """Which tasks of the run, separated by commas: 2/model, globs, families."""

    ids: str = ""


class TreeQuery(TasksQuery):
    """A window shows everything within so many edges of the pool."""

    n: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    all: bool = False


class SelectQuery(TasksQuery):
    """With all_at_point a glob takes tasks that are not in the pool, too."""

    all_at_point: bool = False


class HistoryQuery(In):
    limit: Count = 100


class StateQuery(In):
    """POINT/NAME:SELECTOR as in `cylc workflow-state`."""

    id: str = ""
    offset: str = ""
    flow: Number | None = None
    triggers: bool = False
    messages: bool = False


class SubmissionsQuery(In):
    """Of all tasks, of a point, of a name."""

    point: str = ""
    name: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


class AttemptsQuery(In):
    """At how many of the newest submissions."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


class PathQuery(In):
    """To which task; without one, to what ended last."""

    id: str = ""


class ChangesQuery(In):
    """The batches behind one; `next` of an answer is the `after` of the next request."""

    after: Batch = 0
    limit: Count = 100


class PastQuery(In):
    """Behind a batch, or at a time; without either, as it is now.

    With more than `limit` tasks, those of the newest points.
    """

    batch: Batch | None = None
    at: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 2_000


class PastGraphQuery(TasksQuery):
    """Behind a batch; n edges around the tasks that were live then, or around `ids`."""

    batch: Batch | None = None
    n: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1


class LogQuery(PartQuery):
    """Which log: of the run, or of a job (the latest submission and attempt).

    With an offset behind which there is nothing yet, wait_s is how long to wait for more.
    """

    id: str = ""
    file: str = "out"
    submit: Number | None = None
    attempt: Number | None = None
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = 0.0


class DefinitionQuery(In):
    """One file of it, as it is; without a path, all of it as JSON."""

    path: str = ""
