"""Reads the access file: how people sign in, and which scopes and names they have then.

    [oidc]
    issuer = "https://login.example.org/realms/lab"
    client_id = "tidewheel"

    [[grant]]
    group = "team-a"
    scopes = ["submit", "operate"]
    names = ["team-a/*"]

A file counts as a whole or not at all: with a mistake in it, a server does not start, and one
that runs keeps to what it read before. It is read again when it has changed, so a rule that was
taken out counts at the next request of whoever was signed in by it.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from hmac import compare_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from tidewheel.core.queue.access import BY_HEADER, EVERYTHING, NAMES_MAX, Identity, Scope
from tidewheel.core.queue.people import AccessRule, rules_for
from tidewheel.core.queue.submission import name_finding
from tidewheel.credentials import is_safe_url
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.quantities import parse_duration
from tidewheel.server.middleware import PEER

if TYPE_CHECKING:
    from tidewheel.server.call import Call

FILE_BYTES_MAX = 1024 * 1024
RULES_MAX = 1_000
GROUPS_MAX = 500  # of one person
TEXT_MAX = 256
LASTS_SECONDS_DEFAULT = 8 * 3600.0
LASTS_SECONDS_MIN = 60.0
LASTS_SECONDS_MAX = 24 * 3600.0
OTHERS_MAY_WRITE = 0o022
OTHERS_MAY_READ = 0o007
PROXY_SECRET_HEADER = "X-Tidewheel-Proxy-Secret"
PROXY_SECRET_LENGTH_MIN = 16
CALLBACK_PATH = "/login/oidc/callback"
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,100}")
_log = logging.getLogger("tidewheel.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Names the provider that knows the people, and the claims that say who they are."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)  # None: a public client
    groups_claim: str = "groups"
    person_claim: str = "email"  # which must be verified
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    redirect_uri: str | None = None  # None: where the browser called this server
    lasts_seconds: float = LASTS_SECONDS_DEFAULT
    ca: str | None = None  # a file with certificates to believe instead of the system's


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderSettings:
    """Names the headers in which a trusted proxy says who is calling."""

    user: str
    secret: bytes = field(repr=False)  # which the proxy sends, too, and nobody else knows
    groups: str | None = None
    lasts_seconds: float = LASTS_SECONDS_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Holds what an access file says."""

    oidc: OidcSettings | None = None
    header: HeaderSettings | None = None
    rules: tuple[AccessRule, ...] = ()


class AccessFile:
    """Holds what the access file says now; without a file nobody can sign in."""

    def __init__(self, path: Path | None) -> None:
        """Reads the file; raises BadSetting if it cannot be read or has a mistake."""
        self._path = path
        self._seen: object = None
        self._now = AccessSettings()
        if path is not None:
            self._seen = _version(path)
            self._now = load_access(path)

    @property
    def now(self) -> AccessSettings:
        """Returns what the file says; one that has changed is read first."""
        if self._path is None:
            return self._now
        seen = _version(self._path)
        if seen != self._seen:
            self._seen = seen
            try:
                self._now = load_access(self._path)
                _log.info("access file: %s was read again", self._path)
            except BadSetting as error:
                _log.error(
                    "access file: %s; the rules that were read before stay in force", error
                )
        return self._now

    def rules_for(self, identity: Identity) -> tuple[AccessRule, ...]:
        """Returns the rules that are for a person; none if nobody can sign in so any more."""
        now = self.now
        issuer = None if now.oidc is None else now.oidc.issuer
        is_by_header = identity.source == BY_HEADER and now.header is not None
        return (
            rules_for(now.rules, identity) if is_by_header or identity.source == issuer else ()
        )


def _version(path: Path) -> object:
    try:
        stat = path.stat()
    except OSError as error:
        return error.errno
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_mode


def load_access(path: Path) -> AccessSettings:
    """Returns what an access file says; raises BadSetting with everything that is wrong."""
    try:
        content = _safe_content(path)
        text = content.decode()
        document = tomllib.loads(text)
    except OSError as error:
        raise _wrong(
            path, [f"it cannot be read ({error.strerror}); check its name and its permissions"]
        ) from None
    except (ValueError, RecursionError) as error:  # of TOML, with its line, or of UTF-8
        raise _wrong(path, [f"this is not valid TOML: {error}"]) from None
    reading = _Reading(text, path.parent)
    settings = reading.settings(document)
    if reading.findings:
        raise _wrong(path, reading.findings)
    return settings


def _wrong(path: Path, findings: Iterable[str]) -> BadSetting:
    mistakes = ", and ".join(findings)
    fault = f"the access file {path} cannot be used: {mistakes}"
    return BadSetting("access_file", str(path), fault=fault)


def _safe_content(path: Path) -> bytes:
    """Returns the content of a file that nobody but its owner can have written."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        if stat.st_mode & OTHERS_MAY_WRITE or stat.st_uid not in (0, os.geteuid()):
            raise _wrong(
                path,
                [
                    "others can write it, or it is another user's; expected a file of this "
                    f"user or of root that no other user can write: chmod go-w {path}"
                ],
            )
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise _wrong(path, [f"it has more than {FILE_BYTES_MAX} bytes"])
    return content


class _Wrong(Exception):
    """Says what is wrong with one item; caught in this module."""


Reader = Callable[[Any], Any]


class _Reading:
    """Reads the tables of one file; collects what is wrong, each with its key."""

    def __init__(self, text: str, folder: Path) -> None:
        self.findings: list[str] = []
        lines = text.splitlines()
        self._grants_at = [
            number
            for number, line in enumerate(lines, 1)
            if line.strip().startswith("[[grant]]")
        ]
        self._folder = folder

    def settings(self, document: Mapping[str, Any]) -> AccessSettings:
        """Returns what a document says, as far as it is right."""
        for key in document:
            if key not in ("oidc", "header", "grant"):
                self.findings.append(
                    f"{key!r} is not known here; expected [oidc], [header] and [[grant]]"
                )
        found = AccessSettings(
            oidc=self._oidc(document["oidc"]) if "oidc" in document else None,
            header=self._header(document["header"]) if "header" in document else None,
            rules=self._rules(document.get("grant", [])),
        )
        if not self.findings and found.oidc is None and found.header is None:
            self.findings.append("no one could sign in; give [oidc] or [header]")
        return found

    def _oidc(self, given: object) -> OidcSettings | None:
        items: dict[str, Reader] = {
            "issuer": _provider_url,
            "client_id": _text,
            "client_secret_file": self._secret,
            "groups_claim": _text,
            "person_claim": _text,
            "scopes": _texts,
            "redirect_uri": _redirect_uri,
            "lasts": _lasts,
            "ca": self._file,
        }
        found = self._items("oidc", given, items, needed=("issuer", "client_id"))
        for key, name in (("client_secret_file", "client_secret"), ("lasts", "lasts_seconds")):
            if key in found:
                found[name] = found.pop(key)
        if "openid" not in found.get("scopes", ("openid",)):
            self.findings.append(
                "oidc: scopes: openid is missing; without it, the provider does not say "
                "who signs in"
            )
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            self.findings.append(
                "oidc: the libraries for it are missing: pip install 'tidewheel[oidc]'"
            )
        return None if self.findings else OidcSettings(**found)

    def _header(self, given: object) -> HeaderSettings | None:
        items: dict[str, Reader] = {
            "user": _header,
            "groups": _header,
            "secret_file": self._proxy_secret,
            "lasts": _lasts,
        }
        found = self._items("header", given, items, needed=("user",))
        if "secret_file" not in found and not self.findings:
            self.findings.append(
                "header: secret_file is missing: anyone who can connect from the proxy's "
                "address, such as every user of its machine, could pose as any person. "
                "Name a file with a secret (head -c 32 /dev/urandom | base64) that the proxy "
                f"sends in the header {PROXY_SECRET_HEADER}"
            )
        for key, name in (("secret_file", "secret"), ("lasts", "lasts_seconds")):
            if key in found:
                found[name] = found.pop(key)
        return None if self.findings else HeaderSettings(**found)

    def _rules(self, given: object) -> tuple[AccessRule, ...]:
        if not isinstance(given, list) or len(given) > RULES_MAX:
            self.findings.append(f"grant: write at most {RULES_MAX} tables [[grant]]")
            return ()
        return tuple(
            rule
            for place, one in enumerate(given)
            if (rule := self._rule(self._where(place), one)) is not None
        )

    def _where(self, place: int) -> str:
        at = self._grants_at[place : place + 1]
        return f"grant {place + 1}" + (f" (line {at[0]})" if at else "")

    def _rule(self, where: str, given: object) -> AccessRule | None:
        before = len(self.findings)
        items: dict[str, Reader] = {
            "group": _text,
            "person": _text,
            "scopes": _scopes,
            "names": _names,
        }
        found = self._items(where, given, items, needed=("scopes", "names"))
        if ("group" in found) == ("person" in found):
            self.findings.append(f"{where}: give either group or person, and not both")
        if Scope.ADMIN in found.get("scopes", ()) and found.get("names") != EVERYTHING:
            self.findings.append(f'{where}: scope admin is for everything: write names = ["*"]')
        return AccessRule(**found) if len(self.findings) == before else None

    def _items(
        self, where: str, given: object, items: Mapping[str, Reader], needed: tuple[str, ...]
    ) -> dict[str, Any]:
        if not isinstance(given, dict):
            self.findings.append(f"{where}: write it as a table")
            return {}
        found = {}
        for key, value in given.items():
            if key not in items:
                accepted = ", ".join(items)
                self.findings.append(f"{where}: {key!r} is not known; accepted: {accepted}")
                continue
            try:
                found[key] = items[key](value)
            except (_Wrong, BadSetting) as error:
                self.findings.append(f"{where}: {key}: {error}")
        self.findings += [f"{where}: {key} is missing" for key in needed if key not in given]
        return found

    def _file(self, given: object) -> str:
        path = self._folder / _text(given, 4_096)
        if not path.is_file():
            raise _Wrong(f"there is no file {path}")
        return str(path)

    def _proxy_secret(self, given: object) -> bytes:
        secret = self._secret(given).encode()
        if len(secret) < PROXY_SECRET_LENGTH_MIN:
            raise _Wrong(
                f"the secret has {len(secret)} bytes; expected {PROXY_SECRET_LENGTH_MIN} or "
                "more"
            )
        return secret

    def _secret(self, given: object) -> str:
        path = Path(self._file(given))
        if path.stat().st_mode & OTHERS_MAY_READ:
            raise _Wrong(f"others can read {path}: chmod 600 {path}")
        try:
            return _text(path.read_text("utf-8").strip(), 4_096)
        except _Wrong:  # whose message contains what was read
            raise _Wrong(
                f"{path} must contain one line of 1 to 4096 printable characters"
            ) from None
        except UnicodeDecodeError:
            raise _Wrong(f"{path} is not UTF-8") from None
        except OSError as error:
            raise _Wrong(f"{path} cannot be read: {error}") from None


def _text(given: object, length_max: int = TEXT_MAX) -> str:
    if (
        not isinstance(given, str)
        or not 0 < len(given) <= length_max
        or not given.isprintable()
    ):
        raise _Wrong(
            f"{str(given)[:100]!r}; expected a string of 1 to {length_max} printable characters"
        )
    return given


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or len(given) > NAMES_MAX:
        raise _Wrong(f"write a list of 1 to {NAMES_MAX} strings")
    return tuple(dict.fromkeys(map(_text, given)))


def _scopes(given: object) -> frozenset[Scope]:
    texts = _texts(given)
    if strange := [one for one in texts if one not in list(Scope)]:
        raise _Wrong(f"{strange[0]!r} is not a scope; expected {', '.join(Scope)}")
    return frozenset(map(Scope, texts))


def _names(given: object) -> tuple[str, ...]:
    texts = _texts(given)
    if findings := [found for one in texts if (found := name_finding("a name", one))]:
        raise _Wrong(findings[0])
    return EVERYTHING if EVERYTHING[0] in texts else texts


def _header(given: object) -> str:
    text = _text(given)
    if not _HEADER_NAME.fullmatch(text) or text.lower() in ("authorization", "cookie", "host"):
        raise _Wrong(f"{text!r}; expected the name of a header that only the proxy sets")
    return text.lower()


def _lasts(given: object) -> float:
    seconds = parse_duration(given if isinstance(given, int | float) else _text(given), "lasts")
    if not LASTS_SECONDS_MIN <= seconds <= LASTS_SECONDS_MAX:
        raise _Wrong(f"{seconds:g} s; expected 1m to 24h")
    return seconds


def _provider_url(given: object) -> str:
    text = _text(given)
    if not is_safe_url(text) or urlsplit(text).query or urlsplit(text).fragment:
        raise _Wrong(f"{text!r}; expected https://…, or http:// on this machine")
    return text


def _redirect_uri(given: object) -> str:
    text = _text(given)
    if (
        not is_safe_url(text)
        or urlsplit(text).path != CALLBACK_PATH
        or "?" in text
        or "#" in text
    ):
        raise _Wrong(f"{text!r}; expected https://HOST{CALLBACK_PATH}")
    return text


# Who a proxy says is calling.


def is_proxy(peer: str, proxies: Iterable[str]) -> bool:
    """Says whether a connection comes from an address that was named as a proxy's; ``*`` names
    nobody here, because anybody could then claim to be anybody."""
    try:
        address = ipaddress.ip_address(peer)
        return any(
            address in ipaddress.ip_network(one, strict=False)
            for one in proxies
            if one != EVERYTHING[0]
        )
    except ValueError:  # one of them is no address
        return peer in proxies and peer != EVERYTHING[0]


def person_behind(call: Call) -> Identity | None:
    """Returns the person whom a trusted proxy names in a request; None if it comes from
    elsewhere, whatever its headers say, or if no headers are to be believed."""
    settings = call.server.people.now.header
    peer = call.request.scope.get("extensions", {}).get(PEER, {}).get("host", "")
    if settings is None or not is_proxy(peer, call.server.settings.proxies):
        return None
    return person_in(call.request.headers, settings)


def person_in(headers: Headers, settings: HeaderSettings) -> Identity | None:
    """Returns whom the headers of a proxy name; None without a name or the proxy's secret, and
    if a header comes twice: then one of them is the caller's own."""
    users = headers.getlist(settings.user)
    listed = [] if settings.groups is None else headers.getlist(settings.groups)
    secrets = headers.getlist(PROXY_SECRET_HEADER)
    if len(secrets) != 1 or not compare_digest(secrets[0].encode(), settings.secret):
        return None
    if len(users) != 1 or len(listed) > 1:
        return None
    groups = [one.strip() for one in ",".join(listed).split(",")]
    return identity_of(BY_HEADER, users[0].strip(), [one for one in groups if one])


def identity_of(source: str, person: object, groups: object) -> Identity | None:
    """Returns a person as named by others; None if the name cannot be one."""
    if not isinstance(person, str) or name_finding("person", person) is not None:
        return None
    given = groups if isinstance(groups, list) else []
    kept = [one for one in given if isinstance(one, str) and 0 < len(one) <= TEXT_MAX]
    return Identity(
        person=person, source=source, groups=tuple(dict.fromkeys(kept))[:GROUPS_MAX]
    )
