"""Reads the rules of notifications, what people want to be told and how, from a TOML file.

    [[rule]]
    on = ["stall", "failed"]
    workflow = "nwp/*"
    to = { webhook = "https://chat.example/hook", secret = "…" }

Every mistake is a finding that says which rule has it; that rule is left out, the others count.

The facts of a message are put into texts by plain replacement of ``{field}``, nothing else, and
in one pass, so that a name with braces in it is never read as a field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tidewheel.errors import BadSetting
from tidewheel.quantities import parse_duration

STALL, BLOCKED, FAILED, LATE = "stall", "blocked", "failed", "late"
ERROR, STOPPED, COMPLETED = "error", "stopped", "completed"
EVENTS = (STALL, BLOCKED, FAILED, LATE, ERROR, STOPPED, COMPLETED)

EVERY_SECONDS = {"webhook": 0.0, "mail": 60.0, "command": 0.0}
SUBJECT_DEFAULT = "[tidewheel] {event}: {run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Is a destination to which a JSON document is posted."""

    url: str
    secret: str = field(default="", repr=False)  # signs the document
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca: str = ""  # a file with certificates to believe instead of the system's
    anywhere: bool = False  # also link-local addresses, behind which clouds keep secrets

    kind = "webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTo:
    """Is a destination by mail, which is handed to the server that TIDEWHEEL_SMTP names."""

    to: tuple[str, ...]
    sender: str = ""

    kind = "mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Is a destination that is a command.

    Words are a program with its arguments, into which fields are put; a line is bash's.
    """

    words: tuple[str, ...] = ()
    line: str = ""

    kind = "command"


Destination = Webhook | MailTo | RunCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRule:
    """Says of which events of which runs somebody is told, where, and in which words."""

    name: str
    on: tuple[str, ...]
    to: Destination
    workflow: str = "*"  # a glob
    task: str = "*"  # a glob over names of nodes, for events that tasks have
    every_seconds: float = 0.0  # not more than one message for the same run and event
    after_seconds: float | None = None  # since the time of its point a task is late
    subject: str = SUBJECT_DEFAULT
    text: str = ""

    def wants(self, event: str, workflow: str) -> bool:
        return event in self.on and fnmatchcase(workflow, self.workflow)

    def wants_task(self, name: str) -> bool:
        return fnmatchcase(name, self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Holds the rules of a file that are right, and what is wrong with the others."""

    rules: Sequence[NotificationRule] = ()
    findings: Sequence[str] = ()

    def wants(self, event: str, workflow: str) -> bool:
        return any(rule.wants(event, workflow) for rule in self.rules)

    def named(self, name: str) -> NotificationRule | None:
        return next((rule for rule in self.rules if rule.name == name), None)


NO_RULES = Rules()


FIELDS = (
    *("id", "event", "run", "workflow", "status", "reason", "at", "tasks", "count"),
    *("text", "rule", "store"),
)
_FIELD = re.compile(r"\{([a-z_]+)\}")


def unknown_fields(template: str) -> list[str]:
    """Returns the fields of a template that no message has."""
    return [name for name in dict.fromkeys(_FIELD.findall(template)) if name not in FIELDS]


def filled(template: str, facts: Mapping[str, str]) -> str:
    """Returns the template with its fields replaced; what is no field stays as it is."""
    return _FIELD.sub(lambda found: facts.get(found[1], found[0]), template)


FILE_BYTES_MAX = 1024 * 1024
RULES_MAX = 100
TEXT_MAX = 10_000
NAME = re.compile(r"[\w.-]{1,100}")
HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
OWN_HEADERS = ("host", "content-length", "content-type", "connection", "transfer-encoding")

RULE_KEYS = ("name", "on", "workflow", "task", "every", "after", "subject", "text", "to")
TO_KEYS: Mapping[str, tuple[str, ...]] = {
    "webhook": ("webhook", "secret", "headers", "ca", "anywhere"),
    "mail": ("mail", "from"),
    "command": ("command",),
}

Document = Mapping[str, Any]


class Wrong(Exception):
    """One item of a rule; caught in this module."""


class RulesInForce:
    """Holds the rules of a file as it is now; reads them again when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: object = None
        self.now = NO_RULES

    def refresh(self) -> Rules | None:
        """Returns what was found in the file, if it has changed; may block, reading files."""
        try:
            stat = self._path.stat()
            seen: object = stat.st_mtime_ns, stat.st_size, stat.st_ino
        except OSError as error:
            seen = error.errno
        if seen == self._seen:
            return None
        self._seen = seen
        found = load_rules(self._path)
        # A file that is being written says nothing yet; what was asked for before still counts.
        if found.rules or not found.findings:
            self.now = found
        return found


def load_rules(path: Path) -> Rules:
    """Reads the rules of a file; one that is not there has none."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return NO_RULES
    except OSError as error:
        return Rules(findings=[f"{path}: {error.strerror}; let this user read it"])
    if len(content) > FILE_BYTES_MAX:
        return Rules(findings=[f"{path} has more than {FILE_BYTES_MAX} bytes"])
    found = read_rules(content)
    is_secret = any(isinstance(rule.to, Webhook) and rule.to.secret for rule in found.rules)
    if is_secret and path.stat().st_mode & 0o077:
        warning = f"{path} holds a secret and others may read it: chmod 600 {path}"
        return Rules(rules=found.rules, findings=[*found.findings, warning])
    return found


def read_rules(content: bytes) -> Rules:
    """Returns every rule that is right, and what is wrong with the others."""
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # of TOML or of UTF-8
        return Rules(findings=[f"this is no TOML: {error}"])
    findings = [
        f"{key!r} is not known here; accepted is [[rule]]" for key in document if key != "rule"
    ]
    given = document.get("rule", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        return Rules(findings=[*findings, "rule is no list of tables; write [[rule]]"])
    if len(given) > RULES_MAX:
        findings.append(f"{len(given)} rules; the first {RULES_MAX} count")
    rules: list[NotificationRule] = []
    for number, one in enumerate(given[:RULES_MAX], start=1):
        reading = _Reading(one, number, [])
        rule = reading.rule()
        if rule.name in {other.name for other in rules}:
            reading.findings.append("name: another rule has it already")
        if not reading.findings:
            rules.append(rule)
        findings += [f"rule {number} ({rule.name}): {text}" for text in reading.findings]
    return Rules(rules=rules, findings=findings)


class _Reading(NamedTuple):
    """Reads one rule from TOML; collects what is wrong."""

    given: Document
    number: int
    findings: list[str]

    def rule(self) -> NotificationRule:
        self._refuse_unknown("", self.given, RULE_KEYS)
        to = self._destination()
        return NotificationRule(
            name=self._read(self.given, "name", _name, f"rule-{self.number}"),
            on=self._read(self.given, "on", _events, ("completed",), needed=True),
            to=to,
            workflow=self._read(self.given, "workflow", _text, "*"),
            task=self._read(self.given, "task", _text, "*"),
            every_seconds=self._read(self.given, "every", _duration, EVERY_SECONDS[to.kind]),
            after_seconds=self._after(),
            subject=self._read(self.given, "subject", _template, SUBJECT_DEFAULT),
            text=self._read(self.given, "text", _template, ""),
        )

    def _after(self) -> float | None:
        after: float | None = self._read(self.given, "after", _duration, None)
        if after is not None and LATE not in (self.given.get("on") or ()):
            self.findings.append("after: it is for late alone; add late to on, or leave it out")
        return after

    def _read(
        self,
        given: Document,
        key: str,
        read: Callable[[Any], Any],
        other: Any,  # noqa: ANN401 - TOML holds anything
        *,
        needed: bool = False,
    ) -> Any:  # noqa: ANN401
        if key not in given:
            if needed:
                self.findings.append(f"{key} is missing")
            return other
        try:
            return read(given[key])
        except (Wrong, BadSetting) as error:
            self.findings.append(f"{key}: {error}")
            return other

    def _refuse_unknown(self, where: str, given: Document, known: tuple[str, ...]) -> None:
        for key in given:
            if key not in known:
                accepted = ", ".join(known)
                self.findings.append(f"{where}{key!r} is not known; accepted are {accepted}")

    def _destination(self) -> Destination:
        given = self.given.get("to")
        kinds = [kind for kind in TO_KEYS if isinstance(given, dict) and kind in given]
        if not isinstance(given, dict) or len(kinds) != 1:
            accepted = "{ webhook = URL }, { mail = ADDRESSES } or { command = PROGRAM }"
            self.findings.append(f"to: say where to, one of {accepted}")
            return RunCommand(line="true")
        self._refuse_unknown("to: ", given, TO_KEYS[kinds[0]])
        match kinds[0]:
            case "webhook":
                return self._webhook(given)
            case "mail":
                to = self._read(given, "mail", _addresses, ())
                return MailTo(to=to, sender=self._read(given, "from", _address, ""))
            case _:
                return self._command(given)

    def _webhook(self, given: Document) -> Webhook:
        return Webhook(
            url=self._read(given, "webhook", _url, ""),
            secret=self._read(given, "secret", _text, ""),
            headers=self._read(given, "headers", _headers, ()),
            ca=self._read(given, "ca", _text, ""),
            anywhere=self._read(given, "anywhere", _truth, other=False),
        )

    def _command(self, given: Document) -> RunCommand:
        command = given["command"]
        if isinstance(command, str):
            return RunCommand(line=self._read(given, "command", _text, "true"))
        return RunCommand(words=self._read(given, "command", _words, ("true",)))


def _text(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= TEXT_MAX or "\0" in value:
        raise Wrong(f"{_shown(value)} is no text of 1 to {TEXT_MAX} characters")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise Wrong(f"{_shown(value)}; accepted are up to 100 letters, digits, '_', '-', '.'")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"{_shown(value)}; accepted are true and false")
    return value


def _duration(value: Any) -> float:  # noqa: ANN401
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise Wrong(f"{_shown(value)} is no duration, as 300 or 'PT5M'")
    return parse_duration(value)


def _texts(value: object, what: str) -> tuple[str, ...]:
    many = value if isinstance(value, list) else [value]
    if not many or not all(isinstance(one, str) and one for one in many):
        raise Wrong(f"{_shown(value)}; accepted are {what}")
    return tuple(map(_text, many))


def _events(value: object) -> tuple[str, ...]:
    found = _texts(value, f"some of {', '.join(EVENTS)}")
    for one in found:
        if one not in EVENTS:
            raise Wrong(f"{one!r} is no event; accepted are {', '.join(EVENTS)}")
    return found


def _template(value: object) -> str:
    text = _text(value)
    if unknown := unknown_fields(text):
        shown = ", ".join(f"{{{one}}}" for one in unknown)
        raise Wrong(f"{shown} is no field; accepted are {', '.join(FIELDS)}")
    return text


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(_template, _texts(value, "a program and its arguments")))


def _address(value: object) -> str:
    text = _text(value)
    if "@" not in text or any(one.isspace() or one in "<>,;" for one in text):
        raise Wrong(f"{_shown(value)} is no address, as person@example.org")
    return text


def _addresses(value: object) -> tuple[str, ...]:
    return tuple(map(_address, _texts(value, "one address, or a list of them")))


def _url(value: object) -> str:
    text = _text(value)
    accepted = "no URL; accepted is http://HOST/PATH or https://HOST/PATH"
    try:
        parts = urlsplit(text)
        is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise Wrong(accepted) from None
    if not is_right or not text.isascii() or any(one <= " " for one in text):
        raise Wrong(accepted)
    if parts.username is not None or parts.password is not None:
        raise Wrong("a password in a URL is seen by many; put it into headers")
    return text


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise Wrong("no table; accepted is { NAME = 'VALUE' }")
    for name, text in value.items():
        if not HEADER.fullmatch(name) or name.lower() in OWN_HEADERS:
            raise Wrong(f"{_shown(name)} is no header that may be set")
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise Wrong(f"the value of {name} is no printable ASCII text")
    return tuple(value.items())


def _shown(value: object) -> str:
    return repr(value)[:100]
