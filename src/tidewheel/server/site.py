"""The web page as it was built: which files there are, and how they are sent.

`index.html` names every other file by the hash of its content, so those may be kept for ever.
Only files that lie flat in `assets/` can be asked for: a name with a slash is none.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tidewheel.server.doorman import SECURITY_HEADERS

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
    """A file as it is sent."""

    content: bytes
    media_type: str
    headers: dict[str, str]


def index_page(folder: Path | None) -> bytes | None:
    """The page that loads everything else; None where nothing was built."""
    return _read((folder or BUILT) / "index.html")


def asset(folder: Path | None, name: str, *, compressed: bool) -> SiteFile | None:
    """A file of the built page, as a browser takes it; None if there is none of this name."""
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
