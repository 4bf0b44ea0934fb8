"""The documentation as it was built: which pages there are, and how they are sent.

Its names come from callers, so each is a plain name, one level after the other; what is not a
file of a known kind below the folder does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidewheel.server.static_page import SiteFile

BUILT = Path(__file__).parent / "manual_pages"  # where `make docs` and the wheel put it
INDEX = "index.html"
FOR_AN_HOUR = "public, max-age=3600"
DEPTH_MAX = 4  # of the folders within it
ASSETS = "assets"  # styles and scripts, which each page needs

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".xml": "application/xml",
}

NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tidewheel: documentation</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body>
<h1>The documentation was not built into this copy</h1>
<p>The same pages are text files in the folder <code>docs</code> of the source, to be read as
they are; begin with <code>docs/index.md</code>. <code>make docs</code> in the source builds
them for this server, which then shows them here. <code>tidewheel --help</code> describes every
command, <a href="/api/v1/docs">this page</a> every request.</p>
</body></html>
"""


NO_SUCH_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tidewheel: no such page</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body>
<h1>There is no such page</h1><p>All of them: <a href="/docs/">the documentation</a>.</p>
</body></html>
"""


def is_built(folder: Path | None) -> bool:
    """Says whether the documentation was built, so that there is anything to show."""
    return ((folder or BUILT) / INDEX).is_file()


def page(folder: Path | None, names: Sequence[str]) -> SiteFile | None:
    """The file of these names, from the top down; None if there is none."""
    media_type = MEDIA_TYPES.get(Path(names[-1]).suffix)
    if media_type is None or not all(map(_is_plain, names)):
        return None
    try:
        content = (folder or BUILT).joinpath(*names).read_bytes()
    except OSError:
        return None
    kept = FOR_AN_HOUR if names[0] == ASSETS else "no-cache"
    return SiteFile(content, media_type, {"cache-control": kept})


def _is_plain(name: str) -> bool:
    return not (name.startswith(".") or "/" in name or "\\" in name or "\0" in name)
