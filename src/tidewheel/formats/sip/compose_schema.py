"""Judges compose files as engines do: keys, kinds of values, and names that must be there.

`compose_keys` says what is accepted. What an engine would refuse is an error here, with its
place; values that are still to come are judged when they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import assert_never

import yaml

from tidewheel.core.graph.findings import Findings, Position, meant
from tidewheel.formats.sip import compose_keys
from tidewheel.formats.sip.compose import FilledText, emit_yaml, filled, is_plain, with_samples
from tidewheel.formats.sip.compose_keys import Kind, KnownKeys, ListOf, MapOf, OneOf, Plain
from tidewheel.formats.sip.compose_values import (
    HANDED_FROM,
    is_paired,
    shared_sources,
    sourceless,
    wrong_values,
)
from tidewheel.formats.sip.document import (
    Fields,
    Items,
    Node,
    Scalar,
    is_null,
    number,
    plain_value,
)
from tidewheel.formats.sip.placeholders import Json
from tidewheel.lazy_dataclasses import dataclass

SHOWN_LENGTH_MAX = 60
SERVICES_MAX = 200
SERVICE_NAME_LENGTH_MAX = 49  # what is left of 63 beside `tw-DIGEST_`
REPLICAS_MAX = 1000
MOUNT_PARTS_MAX = 3  # SOURCE:TARGET:MODE
DEFAULT_NETWORK = "default"
SERVICES = "services"
_NAMED = (SERVICES, "networks", "volumes", "secrets", "configs")
GUESSES_MAX = 50  # of one definition: to look for the nearest name takes a while
_RESOLVER = yaml.resolver.Resolver()
_SHAPES: Mapping[str, str] = {
    compose_keys.WHOLE_TAG: "a number",
    compose_keys.NUMBER_TAG: "a number",
    compose_keys.FLAG_TAG: "a boolean",
}


def yaml_type_of(node: Scalar) -> str:
    """Returns what an engine makes of a scalar as `emit_yaml` writes it: a type of YAML 1.1."""
    if is_null(node):
        return compose_keys.NULL_TAG
    if node.quoted or not is_plain(node.text):
        return compose_keys.TEXT_TAG
    resolve: Callable[..., object] = _RESOLVER.resolve  # of which yaml says no types
    yaml_type = str(resolve(yaml.ScalarNode, node.text, (True, False)))
    return yaml_type.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class ComposeChecker:
    """Checks one compose file, whose values have their types already."""

    stage: str
    errors: Findings
    warnings: Findings
    newer: dict[str, Position] = field(default_factory=dict)  # keys of docker compose 2 alone

    def check(self, root: Fields) -> None:
        """Reports everything for which an engine would refuse the file."""
        self._check(root, compose_keys.FILE, "")
        services = root.get("services")
        if isinstance(services, Fields):
            _Names(self, root, services).check()

    def refuse(self, code: str, seen: str, hint: str, position: Position) -> None:
        self.errors.error(code, f"{seen} (stage {self.stage})", hint, position)

    def guess(self, name: str, known: Iterable[str]) -> str:
        """Returns a hint which name may have been meant; "" if none is near."""
        return meant(name, known) if self.errors.error_count < GUESSES_MAX else ""

    def _check(self, node: Node, kind: Kind, path: str) -> None:
        match kind:
            case OneOf():
                self._check_one_of(node, kind, path)
            case Plain():
                self._check_plain(node, kind, path)
            case ListOf():
                self._check_list(node, kind, path)
            case MapOf():
                self._check_map(node, kind, path)
            case KnownKeys():
                self._check_keys(node, kind, path)
            case _:
                assert_never(kind)

    def _check_one_of(self, node: Node, kind: OneOf, path: str) -> None:
        """Checks a value against the one kind whose form it has."""
        if isinstance(node, Scalar) and node.unknown:
            return
        for one in kind.kinds:
            if _has_form(node, one):
                self._check(node, one, path)
                return
        self._wrong(node, kind.words, path)

    def _check_plain(self, node: Node, kind: Plain, path: str) -> None:
        if not isinstance(node, Scalar):
            self._wrong(node, kind.words, path)
            return
        if node.unknown:
            return
        yaml_type = yaml_type_of(node)
        if yaml_type not in kind.tags:
            self._wrong(node, kind.words, path)
            return
        found = FilledText(node.text)
        if yaml_type == compose_keys.TEXT_TAG:
            found = self._filled(node, path)
            if found.is_wrong or found.missing:
                return
            if kind.text is not None and not kind.text.fullmatch(with_samples(found.text)):
                self._wrong(node, kind.words, path)
                return
        text = found.text.replace("_", "")  # YAML 1.1: 1_000
        value = number(text) if kind.least is not None else None
        if value is not None and not _is_within(value, kind):
            self._wrong(node, kind.words, path)

    def _filled(self, node: Scalar, path: str) -> FilledText:
        """Returns a text with its variables; reports those that cannot be meant so."""
        found = filled(node.text)
        if found.is_wrong:
            seen = f"{path} has a $ that does not begin a variable: {_shown(node)}"
            hint = "write $$ for a $ that the container should see"
            self.refuse("compose-dollar", seen, hint, node.position)
        for name in found.missing:
            seen = f"{path} needs the variable {name}, which is never set for a stage"
            hint = f"write the value in its place, or a parameter: {{{{ {name.lower()} }}}}"
            self.refuse("compose-dollar", seen, hint, node.position)
        for name in found.empty:
            seen = f"{path} has the variable {name}, which is empty in every stage"
            hint = (
                f"write $${name} if the container has it, ${{{name}:-VALUE}} for a default, or "
                f"a parameter: {{{{ {name.lower()} }}}}"
            )
            told = f"{seen} (stage {self.stage})"
            self.warnings.warning("compose-variable", told, hint, node.position)
        return found

    def _check_list(self, node: Node, kind: ListOf, path: str) -> None:
        if not isinstance(node, Items):
            self._wrong(node, kind.words, path)
            return
        seen: set[str] = set()
        for one in node.items:
            self._check(one, kind.each, path)
            text = emit_yaml(one)
            if kind.is_unique and text in seen and not _is_open(one):
                told = f"{path} has {_shown(one)} twice"
                self.refuse("compose-twice", told, "remove one of the two", one.position)
            seen.add(text)

    def _check_map(self, node: Node, kind: MapOf, path: str) -> None:
        if not isinstance(node, Fields):
            self._wrong(node, kind.words, path)
            return
        for key, value in node:
            is_judged = kind.names is not None and not key.unknown and path != SERVICES
            if is_judged and kind.names is not None and not kind.names.fullmatch(key.text):
                told = f"{path} has the name {_shown(key)}"
                is_limit = kind.names is compose_keys.ULIMIT_NAME
                signs = "lower-case letters only" if is_limit else "letters, digits and _ . -"
                self.refuse("compose-name", told, f"names have {signs}", key.position)
            self._check(value, kind.each, _below(path, key))

    def _check_keys(self, node: Node, kind: KnownKeys, path: str) -> None:
        if not isinstance(node, Fields):
            if kind is not compose_keys.SERVICE:  # told elsewhere
                self._wrong(node, f"a mapping with the keys of {kind.words}", path)
            return
        for key, value in node:
            if key.text in kind.unrun:
                self._unrun(key, kind)
            elif key.text in kind.known:
                is_told = key.text == "image" and is_null(value)
                if not is_told:
                    self._check(value, kind.known[key.text], _below(path, key))
            else:
                self._check_other(key, value, kind, path)
        there = {key.text for key, _ in node}
        for name in kind.required:
            if name not in there:
                self.refuse(
                    "compose-key", f"{path} has no {name}", f"write {name}: …", node.position
                )

    def _check_other(self, key: Scalar, value: Node, kind: KnownKeys, path: str) -> None:
        """Checks a key that the tables do not have, or not for every docker-compose."""
        is_newer = key.text in kind.newer
        if is_newer:
            self.newer.setdefault(key.text, key.position)
        if is_newer or (kind.is_extensible and key.text.startswith("x-")):
            if path:  # else no engine looks at it
                self._check_texts(value, _below(path, key))
        elif not key.unknown:
            self._unknown(key, kind)

    def _check_texts(self, node: Node, path: str) -> None:
        """Checks the variables in something of which nothing else is known."""
        if isinstance(node, Scalar):
            if not node.unknown and yaml_type_of(node) == compose_keys.TEXT_TAG:
                self._filled(node, path)
            return
        for one in node.items if isinstance(node, Items) else (value for _, value in node):
            self._check_texts(one, path)

    def _unknown(self, key: Scalar, kind: KnownKeys) -> None:
        names = [*kind.known, *kind.newer]
        seen = f"{kind.words} has the key {_shown(key)}, which no engine accepts there"
        hint = self.guess(key.text, names) or compose_keys.MEANT.get((kind.words, key.text), "")
        if not hint and kind is not compose_keys.SERVICE and key.text in _SERVICE_KEYS:
            hint = "it belongs to the service itself: move it there"
        self.refuse("compose-key", seen, hint or "remove it", key.position)

    def _unrun(self, key: Scalar, kind: KnownKeys) -> None:
        seen = f"{kind.words} has the key {_shown(key)}, which workers refuse"
        hint = "remove it: it could affect more than the container"
        self.refuse("compose-key", seen, hint, key.position)

    def _wrong(self, node: Node, accepted: str, path: str) -> None:
        what = path or "the compose file"
        hint = f"expected {accepted}"
        if isinstance(node, Scalar) and accepted.startswith(("a string", "a size such as 64M")):
            hint += ", in quotes"
        self.refuse("compose-value", f"{what} is {_seen(node)}", hint, node.position)


_SERVICE_KEYS = frozenset(compose_keys.SERVICE.known) | compose_keys.SERVICE.newer


def _has_form(node: Node, kind: Kind) -> bool:
    """Says whether a value is the list, the mapping or the single value that a kind takes."""
    match kind:
        case Plain(tags=tags):
            if not isinstance(node, Scalar):
                return False
            # `nothing` is a kind of its own, beside others.
            return tags != {compose_keys.NULL_TAG} or is_null(node)
        case ListOf():
            return isinstance(node, Items)
        case MapOf() | KnownKeys():
            return isinstance(node, Fields)
        case OneOf(kinds=kinds):
            return any(_has_form(node, one) for one in kinds)
        case _:
            assert_never(kind)


def _is_within(value: float, kind: Plain) -> bool:
    is_low = kind.least is not None and value < kind.least
    return not is_low and (kind.most is None or value <= kind.most)


def _below(path: str, key: Scalar) -> str:
    return f"{path}.{key.text[:SHOWN_LENGTH_MAX]}" if path else key.text[:SHOWN_LENGTH_MAX]


def _is_open(node: Node) -> bool:
    return isinstance(node, Scalar) and bool(node.unknown)


def _shown(node: Node) -> str:
    text = node.text if isinstance(node, Scalar) else " ".join(emit_yaml(node).split())
    return repr(text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}…")


def _seen(node: Node) -> str:
    """Returns what stands in a place, in words."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Fields):
        return "a mapping"
    if is_null(node):
        return "empty"
    yaml_type = yaml_type_of(node)
    if yaml_type == compose_keys.TEXT_TAG:
        return f"the text {_shown(node)}"
    return f"{node.text[:SHOWN_LENGTH_MAX]}, {_SHAPES.get(yaml_type, 'a date')}"


# Names that must be there, each once.


@dataclass(frozen=True, slots=True)
class _Names:
    """Checks what parts of a file say of each other."""

    checker: ComposeChecker
    root: Fields
    services: Fields
    names: Mapping[str, Mapping[str, Node]] = field(init=False)  # in each section

    def __post_init__(self) -> None:
        there = {one: self.root.get(one) for one in _NAMED}
        names = {
            one: {key.text: value for key, value in node} if isinstance(node, Fields) else {}
            for one, node in there.items()
        }
        object.__setattr__(self, "names", names)

    def check(self) -> None:
        refuse = self.checker.refuse
        if len(self.services.entries) > SERVICES_MAX:
            seen = f"the compose file has {len(self.services.entries)} services"
            hint = f"at most {SERVICES_MAX} are accepted"
            refuse("compose-service", seen, hint, self.services.position)
            return
        bodies = [(key, body) for key, body in self.services if isinstance(body, Fields)]
        for key, body in bodies:
            self._check_service(key, body)
        self._check_profiles(bodies)
        for section in _NAMED[1:]:
            self._check_external(section)
        self._check_circles()

    def _check_profiles(self, bodies: Sequence[tuple[Scalar, Fields]]) -> None:
        """Reports services that nobody starts, since nobody can ask for their profile."""
        absent = {key.text: key for key, body in bodies if _texts(body.get("profiles"))}
        if bodies and len(absent) == len(bodies):
            seen = "every service has a profile, so none would run"
            hint = "remove profiles from at least one service"
            self.checker.refuse("compose-service", seen, hint, self.services.position)
            return
        hint = "remove profiles"
        needed: set[str] = set()
        for key, body in bodies:
            for place in _needed(body) if key.text not in absent else ():
                if place.text in absent:
                    needed.add(place.text)
                    seen = (
                        f"services.{key.text} needs the service {_shown(place)}, which has a "
                        "profile and never runs"
                    )
                    self.checker.refuse("compose-service", seen, hint, place.position)
        for name, key in absent.items():
            if name not in needed:
                told = f"service {name[:SHOWN_LENGTH_MAX]} has a profile and never runs"
                self.checker.warnings.warning(
                    "compose-service",
                    f"{told} (stage {self.checker.stage})",
                    hint,
                    key.position,
                )

    def _check_service(self, key: Scalar, service: Fields) -> None:
        if len(key.text) > SERVICE_NAME_LENGTH_MAX and not key.unknown:
            seen = f"the name of the service {_shown(key)} has {len(key.text)} characters"
            hint = f"at most {SERVICE_NAME_LENGTH_MAX} are accepted"
            self.checker.refuse("compose-service", seen, hint, key.position)
        for place in _others(service):
            self._known(place, "services", f"services.{key.text}")
        for place in shared_sources(_texts(service.get("volumes_from"))):
            self._known(place, "services", f"services.{key.text}.volumes_from")
        for place in _joined(service.get("networks")):
            if place.text != DEFAULT_NETWORK:
                self._known(place, "networks", f"services.{key.text}")
        for section in ("secrets", "configs"):
            for place in _handed(service.get(section)):
                self._known(place, section, f"services.{key.text}")
        mode, networks = service.get("network_mode"), service.get("networks")
        if mode is not None and not is_null(mode) and networks is not None:
            seen = f"services.{key.text} has both network_mode and networks"
            hint = "keep one of them"
            self.checker.refuse("compose-names", seen, hint, mode.position)
        for one in wrong_values(key.text, service, self.names):
            self.checker.refuse("compose-value", *one)
        self._check_mounts(key, service)
        self._check_numbers(key, service)

    def _known(self, place: Scalar, section: str, who: str) -> None:
        """Reports a name that the file does not have in this section."""
        found = filled(place.text)
        if place.unknown or not found.is_known or found.is_wrong or found.missing:
            return
        names = self.names[section]
        if found.text not in names and not any("{{" in one for one in names):
            what = section.removesuffix("s")
            seen = f"{who} names the {what} {_shown(place)}, which the file does not have"
            hint = self.checker.guess(place.text, names) or f"define it under {section}:"
            self.checker.refuse("compose-names", seen, hint, place.position)

    def _check_mounts(self, key: Scalar, service: Fields) -> None:
        targets: set[str] = set()
        volumes = service.get("volumes")
        for one in volumes.items if isinstance(volumes, Items) else ():
            if _is_open(one):
                continue
            source, target = self._mount(one, key)
            if source is not None:
                self._known(source, "volumes", f"services.{key.text}")
            if target and target in targets:
                seen = (
                    f"services.{key.text} mounts two volumes at {target[:SHOWN_LENGTH_MAX]!r}"
                )
                hint = "give one of them another target"
                self.checker.refuse("compose-names", seen, hint, one.position)
            targets.add(target)

    def _mount(self, one: Node, key: Scalar) -> tuple[Scalar | None, str]:
        """Returns the name of the volume that is mounted, and where; None for a folder."""
        if isinstance(one, Fields):
            kind, source, target = map(one.get, ("type", "source", "target"))
            is_named = isinstance(kind, Scalar) and kind.text == "volume"
            is_named = is_named and isinstance(source, Scalar) and bool(source.text)
            named = source if is_named and isinstance(source, Scalar) else None
            return named, target.text if isinstance(target, Scalar) else ""
        found = filled(one.text) if isinstance(one, Scalar) else FilledText("", False)
        if not found.is_known or not isinstance(one, Scalar):
            return None, ""
        parts = found.text.split(":")
        if len(parts) > MOUNT_PARTS_MAX or not all(parts):
            seen = f"services.{key.text} has the volume {_shown(one)}"
            hint = "write SOURCE:TARGET or SOURCE:TARGET:ro"
            self.checker.refuse("compose-value", seen, hint, one.position)
            return None, ""
        if len(parts) == 1 or parts[0].startswith((".", "/", "~")):
            return None, parts[min(1, len(parts) - 1)]
        return Scalar(parts[0], True, one.position), parts[1]

    def _check_numbers(self, key: Scalar, service: Fields) -> None:
        deploy = service.get("deploy")
        deployed = deploy.get("replicas") if isinstance(deploy, Fields) else None
        wanted = service.get("scale") if deployed is None else deployed
        count = number(wanted.text) if isinstance(wanted, Scalar) else None
        if wanted is not None and count is not None and not 1 <= count <= REPLICAS_MAX:
            seen = f"services.{key.text} has {count:g} replicas"
            hint = f"expected 1 to {REPLICAS_MAX}"
            self.checker.refuse("compose-value", seen, hint, wanted.position)
        for port in _texts(service.get("ports")):
            ends = compose_keys.PORT_TEXT.fullmatch(port.text)
            if ends is not None and not is_paired(*ends.group(3, 4, 5, 6)):
                seen = f"services.{key.text}.ports has {_shown(port)}"
                hint = "write two ranges of the same length, or one port"
                self.checker.refuse("compose-value", seen, hint, port.position)
        limits = service.get("ulimits")
        for name, limit in limits if isinstance(limits, Fields) else ():
            found = plain_value(limit)
            soft, hard = (
                (found.get("soft"), found.get("hard"))
                if isinstance(found, dict)
                else (None, None)
            )
            if isinstance(soft, int) and isinstance(hard, int) and soft > hard:
                seen = (
                    f"services.{key.text}.ulimits.{name.text} has a soft limit above the hard "
                    "limit"
                )
                hint = "write a soft limit of at most the hard limit"
                self.checker.refuse("compose-value", seen, hint, limit.position)
        health = service.get("healthcheck")
        test = health.get("test") if isinstance(health, Fields) else None
        if isinstance(test, Items):
            first = test.items[0] if test.items else None
            words = ("NONE", "CMD", "CMD-SHELL")
            is_good = isinstance(first, Scalar) and (first.unknown or first.text in words)
            if not is_good:
                seen = f"services.{key.text}.healthcheck.test lacks CMD, CMD-SHELL or NONE"
                hint = "write a string, or a list that begins with CMD or CMD-SHELL"
                self.checker.refuse("compose-value", seen, hint, test.position)

    def _check_external(self, section: str) -> None:
        """Reports something external of which more is said than its name."""
        there = self.root.get(section)
        for key, body in there if isinstance(there, Fields) else ():
            external = body.get("external") if isinstance(body, Fields) else None
            if isinstance(body, Fields) and section in HANDED_FROM:
                for one in sourceless(f"{section}.{key.text}", body, HANDED_FROM[section]):
                    self.checker.refuse("compose-value", *one)
            if not isinstance(body, Fields) or external is None or not _is_true(external):
                continue
            fine = {"external", "name"} | ({"driver"} if section == "networks" else set())
            for other, _ in body:
                if other.text not in fine:
                    seen = f"{section}.{key.text} is external and has {_shown(other)}"
                    hint = "an external object can only have a name: remove this key"
                    self.checker.refuse("compose-names", seen, hint, other.position)

    def _check_circles(self) -> None:
        """Reports services that wait for each other in a circle."""
        before: dict[str, list[str]] = {
            key.text: [one.text for one in _others(body)]
            for key, body in self.services
            if isinstance(body, Fields)
        }
        done: set[str] = set()
        for key, _ in self.services:
            found = _circle(key.text, before, done)
            if found:
                seen = f"services wait for each other: {' → '.join(found)}"
                hint = "remove one of these dependencies: depends_on, links or network_mode"
                self.checker.refuse("compose-names", seen, hint, key.position)
                return


def _circle(first: str, before: Mapping[str, Sequence[str]], done: set[str]) -> list[str]:
    """Returns a circle that can be reached from a service; empty if there is none."""
    path: list[str] = []
    waiting: list[Iterator[str]] = [iter([first])]
    while waiting:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
            if path:
                done.add(path.pop())
        elif name in path:
            return [*path[path.index(name) :], name]
        elif name not in done and name in before:
            path.append(name)
            waiting.append(iter(before[name]))
    return []


def _others(service: Fields) -> Iterator[Scalar]:
    """Yields the names of services that a service waits for, or is made from."""
    yield from _needed(service)
    extends = service.get("extends")
    if isinstance(extends, Fields):
        extends = None if extends.get("file") is not None else extends.get("service")
    if isinstance(extends, Scalar):
        yield extends


def _needed(service: Fields) -> Iterator[Scalar]:
    """Yields the names of services that must run beside a service."""
    yield from _joined(service.get("depends_on"))
    for one in _texts(service.get("links")):
        yield Scalar(one.text.partition(":")[0], True, one.position, one.unknown)
    for mode in ("network_mode", "pid", "ipc"):
        node = service.get(mode)
        text = node.text if isinstance(node, Scalar) else ""
        if text.startswith("service:") and isinstance(node, Scalar):
            yield Scalar(text.removeprefix("service:"), True, node.position, node.unknown)


def _joined(node: Node | None) -> Iterator[Scalar]:
    """Yields the names in a list, or the keys of a mapping."""
    if isinstance(node, Fields):
        yield from (key for key, _ in node)
    else:
        yield from _texts(node)


def _handed(node: Node | None) -> Iterator[Scalar]:
    for one in node.items if isinstance(node, Items) else ():
        found = one.get("source") if isinstance(one, Fields) else one
        if isinstance(found, Scalar):
            yield found


def _texts(node: Node | None) -> list[Scalar]:
    items = node.items if isinstance(node, Items) else ()
    return [one for one in items if isinstance(one, Scalar)]


def _is_true(node: Node) -> bool:
    return not isinstance(node, Scalar) or node.text.lower() not in (
        "",
        "false",
        "no",
        "off",
        "n",
    )


# What is known of a file before an engine sees it.


def known_document(node: Node) -> Json:
    """Returns a file as plain values, without those that are still to come."""
    if isinstance(node, Items):
        return [known_document(one) for one in node.items if not _is_open(one)]
    if isinstance(node, Fields):
        return {
            key.text: known_document(value)
            for key, value in node
            if not key.unknown and not _is_open(value)
        }
    yaml_type = yaml_type_of(node)
    if yaml_type == compose_keys.TEXT_TAG:
        return filled(node.text).text
    return _is_true(node) if yaml_type == compose_keys.FLAG_TAG else plain_value(node)
