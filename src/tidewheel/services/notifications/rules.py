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
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.quantities import parse_duration

STALL, BLOCKED, FAILED, LATE = "stall", "blocked", "failed", "late"
# Every event, and how it is said to people.
EVENTS = {
    STALL: "{run} is stalled",
    BLOCKED: "{run}: {count} blocked: {tasks}",
    FAILED: "{run}: {count} failed: {tasks}",
    LATE: "{run}: {count} late: {tasks}",
    "error": "{run} was stopped by an error of its scheduler",
    "stopped": "{run} was stopped",
    "completed": "{run} is completed",
}

EVERY_SECONDS = {"webhook": 0.0, "mail": 60.0, "command": 0.0}
SUBJECT_DEFAULT = "[tidewheel] {event}: {run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Is a destination to which a JSON document is posted."""

    url: str = ""
    secret: str = field(default="", repr=False)  # signs the document
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca: str = ""  # a file with certificates to believe instead of the system's
    anywhere: bool = False  # also link-local addresses, behind which clouds keep secrets

    kind = "webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTo:
    """Is a destination by mail, which is handed to the server that TIDEWHEEL_SMTP names."""

    to: tuple[str, ...] = ()
    sender: str = ""

    kind = "mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Is a destination that is a command: `words` or `line`, the other one is empty.

    Words are a program and its arguments, into which fields are put; bash runs a line as it is.
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


SHOWN = ("name", "workflow", "task", "every_seconds", "after_seconds")  # of rules


def rules_document(rules: Rules) -> dict[str, object]:
    """Returns the rules in force, and what is wrong with the others."""
    return {
        "rules": [
            {
                **{name: getattr(rule, name) for name in SHOWN},
                "on": list(rule.on),
                "kind": rule.to.kind,
                "to": where_to(rule.to),
            }
            for rule in rules.rules
        ],
        "findings": list(rules.findings),
    }


def where_to(to: Destination) -> str:
    """Returns the part of a destination that may be shown to anybody.

    Paths of webhooks and arguments of commands are secrets.
    """
    match to:
        case Webhook(url=url):
            parts = urlsplit(url)
            return f"{parts.scheme}://{parts.netloc}/…"
        case MailTo(to=addresses):
            return ", ".join(addresses)
        case RunCommand(words=words, line=line):
            return (words or line.split())[0] + " …"


FILE_BYTES_MAX = 1024 * 1024
RULES_MAX = 100
TEXT_MAX = 10_000
NAME = re.compile(r"[\w.-]{1,100}")
HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
OWN_HEADERS = ("host", "content-length", "content-type", "connection", "transfer-encoding")

Document = Mapping[str, Any]
Readers = Mapping[str, Callable[[Any], Any]]


class Wrong(Exception):
    """One item of a rule; caught in this module."""


class RulesInForce:
    """Holds the rules of a file as it is now; reads them again when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: object = None
        self.now = NO_RULES

    def refresh(self) -> Rules | None:
        """Reads the file if it has changed and returns what it holds, else None.

        It blocks its thread while it reads.
        """
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
    """Returns the rules of a file with findings about it; no rules if there is no such file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return NO_RULES
    except OSError as error:
        return Rules(findings=[f"{path}: {error.strerror}; check its path and rights"])
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
        return Rules(findings=[f"this is not valid TOML: {error}"])
    findings = [
        f"{key!r} is not known here; expected [[rule]]" for key in document if key != "rule"
    ]
    given = document.get("rule", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        return Rules(findings=[*findings, "rule is not a list of tables; write [[rule]]"])
    if len(given) > RULES_MAX:
        findings.append(f"{len(given)} rules; only the first {RULES_MAX} are used")
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
        self._refuse_unknown("", self.given, (*RULE_ITEMS, "to"))
        to = self._destination()
        if "on" not in self.given:
            self.findings.append("`on` is missing")
        found = self._items(self.given, RULE_ITEMS)
        if "after_seconds" in found and LATE not in (self.given.get("on") or ()):
            self.findings.append(
                "after: this is only for the event late; add late to `on`, or remove `after`"
            )
        found.setdefault("name", f"rule-{self.number}")
        found.setdefault("every_seconds", EVERY_SECONDS[to.kind])
        return NotificationRule(**{"on": ()} | found, to=to)

    def _destination(self) -> Destination:
        given = self.given.get("to")
        kinds = [kind for kind in DESTINATIONS if isinstance(given, dict) and kind in given]
        if not isinstance(given, dict) or len(kinds) != 1:
            accepted = "{ webhook = URL }, { mail = ADDRESSES } or { command = PROGRAM }"
            self.findings.append(f"to: say where to, one of {accepted}")
            return RunCommand()
        made, items = DESTINATIONS[kinds[0]]
        self._refuse_unknown("to: ", given, tuple(items))
        found = self._items(given, items)
        if isinstance(found.get("words"), str):
            found["line"] = found.pop("words")
        return made(**found)

    def _items(self, given: Document, items: Readers) -> dict[str, Any]:
        """Returns the items that are right, by the attributes that they become."""
        found = {}
        for key, read in items.items():
            try:
                if key in given:
                    unit = "_seconds" if read is _duration else ""
                    found[ATTRIBUTES.get(key, key) + unit] = read(given[key])
            except (Wrong, BadSetting) as error:
                self.findings.append(f"{key}: {error}")
        return found

    def _refuse_unknown(self, where: str, given: Document, known: tuple[str, ...]) -> None:
        for key in given:
            if key not in known:
                accepted = ", ".join(known)
                self.findings.append(f"{where}{key!r} is not known; expected one of {accepted}")


def _text(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= TEXT_MAX or "\0" in value:
        raise Wrong(f"{_shown(value)} is not a string of 1 to {TEXT_MAX} characters")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise Wrong(f"{_shown(value)}; expected up to 100 letters, digits, '_', '-', '.'")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"{_shown(value)}; expected true or false")
    return value


def _duration(value: Any) -> float:  # noqa: ANN401
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise Wrong(f"{_shown(value)} is not a valid duration, such as 300 or 'PT5M'")
    return parse_duration(value)


def _texts(value: object, what: str) -> tuple[str, ...]:
    many = value if isinstance(value, list) else [value]
    if not many or not all(isinstance(one, str) and one for one in many):
        raise Wrong(f"{_shown(value)}; expected {what}")
    return tuple(map(_text, many))


def _events(value: object) -> tuple[str, ...]:
    found = _texts(value, f"some of {', '.join(EVENTS)}")
    if wrong := [one for one in found if one not in EVENTS]:
        raise Wrong(f"{wrong[0]!r} is not an event; expected one of {', '.join(EVENTS)}")
    return found


def _template(value: object) -> str:
    text = _text(value)
    if unknown := unknown_fields(text):
        shown = ", ".join(f"{{{one}}}" for one in unknown)
        raise Wrong(f"{shown} is not a field; expected one of {', '.join(FIELDS)}")
    return text


def _command(value: object) -> str | tuple[str, ...]:
    """Returns a line of bash, or the words of a command, into which fields are put."""
    if isinstance(value, str):
        return _text(value)
    return tuple(map(_template, _texts(value, "a program and its arguments")))


def _address(value: object) -> str:
    text = _text(value)
    if "@" not in text or any(one.isspace() or one in "<>,;" for one in text):
        raise Wrong(f"{_shown(value)} is not an address, such as person@example.org")
    return text


def _addresses(value: object) -> tuple[str, ...]:
    return tuple(map(_address, _texts(value, "one address, or a list of them")))


def _url(value: object) -> str:
    text = _text(value)
    accepted = "not a URL; expected http://HOST/PATH or https://HOST/PATH"
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
        raise Wrong("not a table; expected { NAME = 'VALUE' }")
    for name, text in value.items():
        if not HEADER.fullmatch(name) or name.lower() in OWN_HEADERS:
            raise Wrong(f"{_shown(name)} is not a header that may be set")
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise Wrong(f"the value of {name} is not printable ASCII")
    return tuple(value.items())


def _shown(value: object) -> str:
    return repr(value)[:100]


# The items of a rule and of each destination, with what reads them.
RULE_ITEMS: Readers = {
    "name": _name,
    "on": _events,
    "workflow": _text,
    "task": _text,
    "every": _duration,
    "after": _duration,
    "subject": _template,
    "text": _template,
}
_WEBHOOK: Readers = {
    "webhook": _url,
    "secret": _text,
    "headers": _headers,
    "ca": _text,
    "anywhere": _truth,
}
DESTINATIONS: Mapping[str, tuple[Callable[..., Destination], Readers]] = {
    "webhook": (Webhook, _WEBHOOK),
    "mail": (MailTo, {"mail": _addresses, "from": _address}),
    "command": (RunCommand, {"command": _command}),
}
# What items are called in Python, where that is another word; durations get their unit.
ATTRIBUTES = {"webhook": "url", "mail": "to", "from": "sender", "command": "words"}
