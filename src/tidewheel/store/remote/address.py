"""Where a server is, and how the paths below its API are written."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit

from tidewheel.errors import BadSetting

API = "/api/v1"
SERVER_ACCEPTED = (
    "http://HOST:PORT or https://HOST, without user, password or parameters; "
    "several with commas between them"
)
_PORTS = {"http": 80, "https": 443}

Query = Mapping[str, str | int | float | bool | None]


class Address:
    """A host, a port, TLS or not, and perhaps a path before ours."""

    def __init__(self, url: str) -> None:
        try:
            split = urlsplit(url)
            port = split.port
        except ValueError:
            raise BadSetting("server", url, SERVER_ACCEPTED) from None
        if split.username is not None or split.password is not None:
            raise BadSetting("server", f"{split.scheme}://…@{split.hostname}", SERVER_ACCEPTED)
        odd = split.query or split.fragment or not url.isascii() or not url.isprintable()
        if split.scheme not in _PORTS or not split.hostname or odd or " " in url:
            raise BadSetting("server", url, SERVER_ACCEPTED)
        self.secure = split.scheme == "https"
        self.host = split.hostname
        self.port = port or _PORTS[split.scheme]
        self.authority = split.netloc
        # Whoever copies it from a request has our path in it.
        self._before = split.path.rstrip("/").removesuffix(API)
        self.url = f"{split.scheme}://{split.netloc}{self._before}"

    def target(self, path: str, query: Query | None) -> str:
        """What a request asks for; parameters that are None are left out."""
        given = {
            name: _text(value) for name, value in (query or {}).items() if value is not None
        }
        return f"{self._before}{API}{path}" + (f"?{urlencode(given)}" if given else "")


def addresses(text: str) -> tuple[Address, ...]:
    """Of servers on one store, separated by commas: any of them will do."""
    return tuple(Address(one.strip()) for one in text.split(","))


def path_of(*parts: str) -> str:
    """A path below the API; each part may hold anything."""
    return "".join("/" + _segment(part) for part in parts)


def _segment(part: str) -> str:
    # Proxies take . and .. for folders.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
