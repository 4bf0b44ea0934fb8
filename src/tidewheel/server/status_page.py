"""What goes on, as a plain page: runs, queues, workers. No script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tidewheel.api.tasks import QueueView, WorkerView
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.quantities import show_duration
from tidewheel.server.metrics import StoreFigures
from tidewheel.server.static_page import PLAIN_HEAD
from tidewheel.vocabulary import time_text

ROWS_MAX = 100

_HEAD = f"""<!doctype html>
<html lang="en"><head>{PLAIN_HEAD}<title>tidewheel</title>
<meta http-equiv="refresh" content="5"></head><body>
<h1>tidewheel</h1>
"""
_FOOT = """<p><a href="/docs/">documentation</a> · <a href="/api/v1/docs">REST API</a> ·
<a href="/metrics">figures</a></p>
</body></html>
"""

LOGIN_NEEDED = f"""<!doctype html>
<html lang="en"><head>{PLAIN_HEAD}<title>tidewheel: log in</title></head>
<body class="door"><main class="door"><h1>tidewheel</h1>
<p>Open the link that <code>tidewheel up</code> printed. It is good once and for
five minutes; whoever has a token makes another:</p>
<pre>tidewheel token link</pre>
</main></body></html>
"""


def html(seen: StoreFigures) -> str:
    """All of it, each list cut to its first rows."""
    runs = [(run.name, run.status, run.reason, time_text(run.updated_at)) for run in seen.runs]
    return (
        _HEAD
        + _table("Runs", ("run", "status", "reason", "changed"), runs)
        + _table(
            "Queues",
            ("queue", "waiting", "ready", "running", "oldest ready", ""),
            map(_queue_row, _queues_in_use(seen)),
        )
        + _table(
            "Workers",
            ("worker", "name", "host", "queues", "slots", "leases", "trouble"),
            map(_worker_row, seen.workers),
        )
        + _FOOT
    )


def _queues_in_use(seen: StoreFigures) -> list[QueueView]:
    """Without those that runs left behind: nothing is open in them, and nobody paused them."""
    over = {run.queue for run in seen.runs if run.ended_at is not None}
    return [
        view
        for view in seen.queues
        if view.queue not in over
        or view.settings.paused
        or any(view.counts.get(status, 0) for status in Status if status not in FINAL)
    ]


def _queue_row(view: QueueView) -> Sequence[object]:
    counts = view.counts
    running = counts.get(Status.RUNNING, 0) + counts.get(Status.CANCELLING, 0)
    age = view.oldest_ready_seconds
    return (
        view.queue,
        counts.get(Status.WAITING, 0),
        counts.get(Status.READY, 0),
        running,
        "" if age is None else show_duration(age),
        "paused" if view.settings.paused else "",
    )


def _worker_row(view: WorkerView) -> Sequence[object]:
    queues = ", ".join(view.queues)
    return (
        *(view.id, view.name, view.process.host, queues),
        *(view.slots, view.leases, view.trouble or ""),
    )


def _table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    listed = list(rows)
    if not listed:
        return f"<h2>{title}</h2><p>None.</p>\n"
    heads = "".join(f"<th>{escape(header)}</th>" for header in headers)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>\n"
        for row in listed[:ROWS_MAX]
    )
    more = len(listed) - ROWS_MAX
    rest = f"<p>and {more} more</p>\n" if more > 0 else ""
    return (
        f'<h2>{title}</h2><table border="1" cellpadding="4"><thead><tr>{heads}</tr></thead>'
        f"<tbody>\n{lines}</tbody></table>\n{rest}"
    )
