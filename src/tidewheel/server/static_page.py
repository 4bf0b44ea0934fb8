"""Finds the files of the built web page, and says how they are sent.

`index.html` names every other file by the hash of its content, so those may be kept for ever.
Only files that lie flat in `assets/` can be asked for: a name with a slash finds nothing.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path

from tidewheel.api.tasks import QueueView
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.quantities import show_duration
from tidewheel.server.access_file import AccessSettings
from tidewheel.server.metrics import StoreFigures
from tidewheel.server.middleware import SECURITY_HEADERS
from tidewheel.vocabulary import time_text

BUILT = Path(__file__).parent / "built_page"  # where `make web` and the wheel put it
FOR_EVER = "public, max-age=31536000, immutable"
FOR_AN_HOUR = "public, max-age=3600"
# For pages that the server writes by itself; where nothing is built they are plainer still.
PLAIN_HEAD = """<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/assets/favicon.svg"><link rel="stylesheet" href="/assets/plain.css">"""
HASHED = "-"  # a built name is NAME-HASH.KIND; what is copied as it is has no hash
COMPRESSED_MIN = 1_024

MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".map": "application/json",
}
# A worker has the policy of its own file. Graphviz is compiled there, and only there.
WORKER = "worker"
POLICY = "content-security-policy"
COMPILING = SECURITY_HEADERS[POLICY] + "; script-src 'self' 'wasm-unsafe-eval'"


class SiteFile(NamedTuple):
    """Holds the content of a file with the media type and headers with which it is sent."""

    content: bytes
    media_type: str
    headers: dict[str, str]


def index_page(folder: Path | None) -> bytes | None:
    """Returns the page that loads everything else; None where nothing was built."""
    return _read((folder or BUILT) / "index.html")


def asset(folder: Path | None, name: str, *, compressed: bool) -> SiteFile | None:
    """Returns a file of the built page, compressed if the browser takes that; None if there is
    no such file."""
    media_type = MEDIA_TYPES.get(Path(name).suffix)
    if media_type is None or "/" in name or "\0" in name:
        return None
    path = (folder or BUILT) / "assets" / name
    content = _read(path)
    if content is None:
        return None
    headers = {"cache-control": FOR_EVER if HASHED in name else FOR_AN_HOUR}
    headers["vary"] = "accept-encoding"
    if name.startswith(WORKER):
        headers[POLICY] = COMPILING
    if compressed and len(content) >= COMPRESSED_MIN:
        content = _compressed(content)
        headers["content-encoding"] = "gzip"
    return SiteFile(content, media_type, headers)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@lru_cache(maxsize=64)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=6, mtime=0)


# What goes on, as a plain page: runs, queues, workers. No script, nothing from elsewhere.

ROWS_MAX = 100

_HEAD = f"""<!doctype html>
<html lang="en"><head>{PLAIN_HEAD}<title>tidewheel</title>
<meta http-equiv="refresh" content="5"></head><body>
<h1>tidewheel</h1>
"""
_FOOT = """<p><a href="/docs/">documentation</a> · <a href="/api/v1/docs">REST API</a> ·
<a href="/metrics">metrics</a></p>
</body></html>
"""

_BY_PROVIDER = '<p><a class="button" href="/login/oidc">Sign in</a></p>'
_BY_PROXY = """<form method="post" action="/login/proxy"><button autofocus>Sign in</button>
</form>"""
_LOGIN_NEEDED = """{ways}
<p>Open the link that <code>tidewheel up</code> printed. It is for a single use and expires in
five minutes; with a token you can make another:</p>
<pre>tidewheel token link</pre>"""


def plain_page(content: str) -> str:
    """Returns a page with one thing on it, which stands before all others."""
    return f"""<!doctype html>
<html lang="en"><head>{PLAIN_HEAD}<title>tidewheel: log in</title></head>
<body class="door"><main class="door"><h1>tidewheel</h1>
{content}
</main></body></html>
"""


def refused_page(words: str) -> str:
    """Returns the page for a person whose request was refused, with the reason."""
    return plain_page(f'<p>{escape(words)}</p>\n<p><a href="/login">Back</a></p>')


def login_needed(people: AccessSettings) -> str:
    """Returns the page for a browser that is not known: how to sign in or log in."""
    by_provider = "" if people.oidc is None else _BY_PROVIDER
    by_proxy = "" if people.header is None else _BY_PROXY
    return plain_page(_LOGIN_NEEDED.format(ways=by_proxy + by_provider))


def html(seen: StoreFigures) -> str:
    """Returns the page of the store's figures, each list cut to its first rows."""
    runs = [(run.name, run.status, run.reason, time_text(run.updated_at)) for run in seen.runs]
    # Without the queues of ended runs that are neither open nor paused.
    over = {run.queue for run in seen.runs if run.ended_at is not None}
    queues = [
        view
        for view in seen.queues
        if view.queue not in over
        or view.settings.paused
        or any(view.counts.get(status, 0) for status in Status if status not in FINAL)
    ]
    workers = [
        (
            *(one.id, one.name, one.process.host, ", ".join(one.queues)),
            *(one.slots, one.leases, one.trouble or ""),
        )
        for one in seen.workers
    ]
    of_queues = ("queue", "waiting", "ready", "running", "oldest ready", "")
    of_workers = ("worker", "name", "host", "queues", "slots", "leases", "trouble")
    return (
        _HEAD
        + _table("Runs", ("run", "status", "reason", "changed"), runs)
        + _table("Queues", of_queues, map(_queue_row, queues))
        + _table("Workers", of_workers, workers)
        + _FOOT
    )


def _queue_row(view: QueueView) -> Sequence[object]:
    counts, age = Counter(view.counts), view.oldest_ready_seconds
    return (
        *(view.queue, counts[Status.WAITING], counts[Status.READY]),
        counts[Status.RUNNING] + counts[Status.CANCELLING],
        "" if age is None else show_duration(age),
        "paused" if view.settings.paused else "",
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


# The documentation as it was built: which pages there are, and how they are sent.
#
# Its names come from callers, so each is a plain name, one level after the other; what is not
# a file of a known kind below the folder does not exist.

DOCS_BUILT = Path(__file__).parent / "manual_pages"  # where `make docs` and the wheel put it
INDEX = "index.html"
DEPTH_MAX = 4  # of the folders within it
ASSETS = "assets"  # styles and scripts, which each page needs

DOCS_MEDIA_TYPES = {
    kind: MEDIA_TYPES[kind] for kind in (".js", ".css", ".svg", ".png", ".json")
} | {".html": "text/html; charset=utf-8", ".xml": "application/xml"}
_DOCS_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tidewheel: {title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body>"""

NOT_BUILT = f"""{_DOCS_HEAD.format(title="documentation")}
<h1>The documentation was not built into this copy</h1>
<p>The same pages are text files in the folder <code>docs</code> of the source, to be read as
they are; begin with <code>docs/index.md</code>. <code>make docs</code> in the source builds
them for this server, which then shows them here. <code>tidewheel --help</code> describes every
command, <a href="/api/v1/docs">this page</a> every request.</p>
</body></html>
"""


NO_SUCH_PAGE = f"""{_DOCS_HEAD.format(title="no such page")}
<h1>There is no such page</h1><p>All pages: <a href="/docs/">the documentation</a>.</p>
</body></html>
"""


def is_built(folder: Path | None) -> bool:
    """Says whether the documentation was built, so that there is anything to show."""
    return ((folder or DOCS_BUILT) / INDEX).is_file()


def docs_page(folder: Path | None, names: Sequence[str]) -> SiteFile | None:
    """Returns the file at these names, from the top folder down; None if there is none."""
    media_type = DOCS_MEDIA_TYPES.get(Path(names[-1]).suffix)
    if media_type is None or any(
        name.startswith(".") or set(name) & set("/\\\0") for name in names
    ):
        return None
    content = _read((folder or DOCS_BUILT).joinpath(*names))
    if content is None:
        return None
    kept = FOR_AN_HOUR if names[0] == ASSETS else "no-cache"
    return SiteFile(content, media_type, {"cache-control": kept})
