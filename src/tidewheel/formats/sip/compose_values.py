"""Judges values of services that engines refuse only when they make the containers.

docker-compose accepts them in a file, so a stage with one would be taken, and fail.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from tidewheel.core.graph.findings import Position
from tidewheel.formats.sip.compose import filled
from tidewheel.formats.sip.compose_keys import EXPOSED_TEXT, PORT_TEXT
from tidewheel.formats.sip.document import Fields, Items, Node, Scalar
from tidewheel.lazy_dataclasses import NamedTuple

HANDED_FROM = {  # what is in a secret or a config
    "secrets": ("file", "environment", "external"),
    "configs": ("file", "content", "environment", "external"),
}
PORT_MAX = 65535
_PORT_LENGTH_MAX = 9  # of digits
MEMORY_BYTES_MIN = 6 * 1024**2  # of a container: what engines want at least
_UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SIZE = re.compile(r"(?i:(\d+(?:\.\d+)?)\s*([bkmgt]?)i?b?)", re.ASCII)
_GATEWAY = "host-gateway"
_OF_HOST = "host"  # the name that engines give to the network of the host
_ENGINES_OWN = (_OF_HOST, "bridge", "none")
_OFF = ("false", "no", "off", "n")
_SHOWN_LENGTH_MAX = 60


class ImpossibleValue(NamedTuple):
    """Says what is wrong with a value, and what is accepted."""

    seen: str
    hint: str
    position: Position


def wrong_values(
    name: str, service: Fields, named: Mapping[str, Mapping[str, Node]]
) -> Iterator[ImpossibleValue]:
    """Yields what no engine makes a container of; ``named`` are the sections of the file."""
    path = f"services.{name[:_SHOWN_LENGTH_MAX]}"
    yield from _ports(path, service)
    yield from _clashes(name, path, named["services"])
    yield from _hosts(path, service.get("extra_hosts"))
    yield from _memory(f"{path}.mem_limit", service.get("mem_limit"))
    node = _below(service, "deploy", "resources", "limits", "memory")
    yield from _memory(f"{path}.deploy.resources.limits.memory", node)
    yield from _networks(path, service.get("networks"), named["networks"])
    yield from _shares(path, service)


# What a service may say itself, and under `deploy`, where docker compose 2 wants all of it.
_SHARES = {
    "cpus": ("resources", "limits", "cpus"),
    "mem_limit": ("resources", "limits", "memory"),
    "pids_limit": ("resources", "limits", "pids"),
    "mem_reservation": ("resources", "reservations", "memory"),
    "scale": ("replicas",),
}


def _shares(path: str, service: Fields) -> Iterator[ImpossibleValue]:
    """Yields limits that stand in one place while others stand, or differ, in the other."""
    for key, place in _SHARES.items():
        here, above = service.get(key), _below(service.get("deploy"), *place[:-1])
        there = _below(above, place[-1])
        is_apart = isinstance(above, Fields) and len(place) > 1 and there is None
        differs = _known(here) is not None and _known(there) not in (None, _known(here))
        if here is not None and (differs or is_apart):
            name = ".".join(("deploy", *place))
            seen = f"{path} has both {key} and {'.'.join(('deploy', *place[:-1]))}"
            hint = f"set it once, as {name}"
            yield ImpossibleValue(seen, hint, here.position)


def _below(node: Node | None, *keys: str) -> Node | None:
    for key in keys:
        node = node.get(key) if isinstance(node, Fields) else None
    return node


def sourceless(path: str, body: Fields, accepted: Sequence[str]) -> Iterator[ImpossibleValue]:
    """Yields a secret or config of which nobody knows what is in it."""
    if all(body.get(one) is None for one in accepted):
        seen = f"{path} does not say where its content comes from"
        yield ImpossibleValue(seen, f"write one of {', '.join(accepted)}", body.position)


def _known(node: Node | None) -> str | None:
    """Returns a single value as an engine sees it; None if it is none, or still to come."""
    if not isinstance(node, Scalar) or node.unknown:
        return None
    found = filled(node.text)
    is_good = found.is_known and not found.is_wrong and not found.missing
    return found.text if is_good else None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]}…")


def _ports(path: str, service: Fields) -> Iterator[ImpossibleValue]:
    for key, node, form in (
        ("ports", service.get("ports"), PORT_TEXT),
        ("expose", service.get("expose"), EXPOSED_TEXT),
    ):
        for one in node.items if isinstance(node, Items) else ():
            texts = [_known(one)]
            if isinstance(one, Fields):
                texts = [_known(one.get("published")), _known(one.get("target"))]
            for text in texts:
                found = form.fullmatch(text) if text is not None else None
                if text is not None and found is not None and not _are_ports(text):
                    hint = f"ports are numbers from 1 to {PORT_MAX}"
                    yield ImpossibleValue(
                        f"{path}.{key} has {_shown(text)}", hint, one.position
                    )


class _Published(NamedTuple):
    """Names a port of the host that a service takes."""

    address: str  # "" are all
    port: str
    protocol: str
    position: Position

    def clashes(self, other: _Published) -> bool:
        is_there = not self.address or not other.address or self.address == other.address
        return is_there and (self.port, self.protocol) == (other.port, other.protocol)


def _clashes(name: str, path: str, services: Mapping[str, Node]) -> Iterator[ImpossibleValue]:
    """Yields the ports of the host that a service before in the file, or the same, has, too."""
    own = list(_published(services.get(name)))
    before = [(name, one) for one in own]
    for other, service in services.items() if own else ():
        if other == name:
            break
        before += [(other, one) for one in _published(service)]
    for number, one in enumerate(own):
        others = (
            who for who, two in (*before[:number], *before[len(own) :]) if two.clashes(one)
        )
        if (who := next(others, None)) is not None:
            seen = f"{path} publishes port {one.port}, as services.{who} does"
            hint = "publish it once; without a number the engine chooses a free port"
            yield ImpossibleValue(seen, hint, one.position)


def _published(service: Node | None) -> Iterator[_Published]:
    """Yields the ports of the host that a service takes by number; no ranges."""
    if not isinstance(service, Fields) or service.get("profiles") is not None:
        return
    if _known(service.get("network_mode")) == _OF_HOST:
        return
    node = service.get("ports")
    for one in node.items if isinstance(node, Items) else ():
        if isinstance(one, Fields):
            keys = ("host_ip", "published", "protocol")
            address, port, protocol = (_known(one.get(key)) or "" for key in keys)
        else:
            found = PORT_TEXT.fullmatch(_known(one) or "")
            if found is None or found[4] or found[6]:
                continue
            address, port, protocol = (found[2] or "")[:-1], found[3] or "", found[8] or ""
        if port.isdecimal() and int(port):
            everywhere = address in ("0.0.0.0", "[::]", "::")
            yield _Published(
                "" if everywhere else address, port, protocol or "tcp", one.position
            )


def _are_ports(text: str) -> bool:
    """Says whether all numbers of an entry are ports; that of the host may be 0: a free one."""
    outer, _, inner = text.partition("/")[0].rpartition(":")
    outside = outer.rpartition(":")[2].split("-")
    return all(_is_port(one, 1) for one in inner.split("-")) and all(
        _is_port(one, 0) for one in outside if one
    )


def _is_port(text: str, least: int) -> bool:
    return len(text) <= _PORT_LENGTH_MAX and least <= int(text) <= PORT_MAX


def _hosts(path: str, node: Node | None) -> Iterator[ImpossibleValue]:
    pairs: list[tuple[str | None, Position]] = []
    if isinstance(node, Fields):
        pairs = [(_known(value), value.position) for _, value in node]
    for one in node.items if isinstance(node, Items) else ():
        text = _known(one)
        if text is not None:
            text = re.split("[:=]", text, maxsplit=1)[-1] if re.search("[:=]", text) else ""
        pairs.append((text, one.position))
    for address, position in pairs:
        if address is not None and not _is_address(address):
            seen = f"{path}.extra_hosts has the address {_shown(address)}"
            hint = f"write NAME:ADDRESS with an address such as 10.1.0.7, or NAME:{_GATEWAY}"
            yield ImpossibleValue(seen, hint, position)


def _is_address(text: str) -> bool:
    if text == _GATEWAY:
        return True
    try:
        ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _memory(path: str, node: Node | None) -> Iterator[ImpossibleValue]:
    text = _known(node)
    found = _SIZE.fullmatch(text) if text is not None else None
    if node is None or text is None or found is None:
        return
    size = float(found[1]) * _UNITS[found[2].lower()]
    if 0 < size < MEMORY_BYTES_MIN:  # 0: no limit
        yield ImpossibleValue(
            f"{path} is {_shown(text)}", "expected at least 6m", node.position
        )


def _networks(
    path: str, node: Node | None, networks: Mapping[str, Node]
) -> Iterator[ImpossibleValue]:
    """Yields the network of the host among others, since no container is in both, and networks
    with a name that nobody can give to one."""
    entries = [key for key, _ in node] if isinstance(node, Fields) else []
    if isinstance(node, Items):
        entries = [one for one in node.items if isinstance(one, Scalar)]
    for one in entries:
        if len(entries) > 1 and _is_of_host(one.text, networks.get(one.text)):
            seen = (
                f"{path} is in the network of the host, {_shown(one.text)}, and in another "
                "network"
            )
            yield ImpossibleValue(seen, "keep one of them", one.position)
        body = networks.get(one.text)
        given = body.get("name") if isinstance(body, Fields) else None
        real = _known(given)
        if given is not None and real in _ENGINES_OWN and not _is_external(body):
            seen = f"networks.{one.text[:_SHOWN_LENGTH_MAX]} has the name {real!r}"
            hint = "each engine already has this network: add external: true"
            yield ImpossibleValue(seen, hint, given.position)


def _is_external(body: Node | None) -> bool:
    external = body.get("external") if isinstance(body, Fields) else None
    is_off = isinstance(external, Scalar) and external.text.lower() in _OFF
    return external is not None and not is_off


def _is_of_host(name: str, body: Node | None) -> bool:
    if not isinstance(body, Fields) or not _is_external(body):
        return False
    external = body.get("external")
    given = external.get("name") if isinstance(external, Fields) else body.get("name")
    return (_known(given) or name) == _OF_HOST


def is_paired(first: str | None, last: str | None, inner: str, inner_last: str | None) -> bool:
    """Says whether as many ports of the host are named as of the container, or none."""
    inside = int(inner_last or inner) - int(inner)
    if not first:
        return inside >= 0
    outside = int(last or first) - int(first)
    return outside == inside >= 0 or (inside == 0 and outside >= 0)


def shared_sources(entries: Sequence[Scalar]) -> Iterator[Scalar]:
    """Yields the services of `volumes_from`: SERVICE:MODE, not container:NAME."""
    for one in entries:
        name = one.text.removeprefix("service:").partition(":")[0]
        if not one.text.startswith("container:"):
            yield Scalar(name, True, one.position, one.unknown)
