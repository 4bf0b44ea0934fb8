"""Gives the containers of all stages of a run one network, beside those of each stage.

Each run whose definition has a service, or says so, has one such network on each engine: a
bridge, or an overlay on a Swarm, which only services of the Swarm can use. It is made for the
first stage that needs it and removed when no stage has containers left, by whichever worker
sees that; stages after that make it anew. Its name follows from the store and the number of the
run, which no author of a file can choose, and a file that names it is refused as any that names
a network of others.

In it a container is known as STAGE.SERVICE, and as SERVICE. An engine asks the networks of a
container for a name in the order of their own names (libnetwork, 17.x to 28.x): that of the run
comes after those of the stage, so a stage finds its own services first, and those of others
only by names that it has not itself.

A network without running containers can be removed by anybody, also where containers were
created in it and not yet started. So whoever makes a project looks afterwards whether the
network is still there, and begins again if it is not; and nobody removes one in which any
container exists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.queue.task import TaskId
from tidewheel.ports.runners import Assignment, Leftover
from tidewheel.runners.containers.docker_cli import Cli, json_format, json_rows
from tidewheel.runners.containers.policy import OWN_NETWORKS
from tidewheel.runners.containers.project import (
    ATTEMPT,
    DIGEST_LENGTH,
    READABLE_LENGTH_MAX,
    RUNNER,
    STORE,
    TASK,
    CannotCreate,
    Tags,
)
from tidewheel.runners.containers.stage_spec import BadStage

NETWORK = "tidewheel.network"  # the label of such networks: of which runner
KEY = "tidewheel-block"  # what it is called in a file
PREFIX = "tw_"  # sorts after "tw-", with which the names of projects begin
MAKE_TRIES = 5


def network_name(assignment: Assignment) -> str:
    """Returns the name of the network of the run that a task belongs to.

    Raises BadStage if it belongs to none.
    """
    task = assignment.task
    if task.run is None:
        raise BadStage("only stages of a run share a network; leave block_network out")
    unique = f"{assignment.store}\0{task.run}".encode(errors="replace")
    digest = sha256(unique).hexdigest()[:DIGEST_LENGTH]
    run = re.sub(r"[^a-z0-9]+", "-", read_job_name(task.id).run.lower()).strip("-")
    return f"{PREFIX}{run[:READABLE_LENGTH_MAX]}_{digest}"


def attach(
    document: dict[str, Any], network: str, stages: Sequence[str], *, is_compose_2: bool
) -> None:
    """Puts all services of a resolved file, that have networks, into one more: all but those
    in a network of the engine itself, such as the host's, beside which there can be no other.

    ``stages`` are the names by which others know the stage. A stage of one service needs no
    network of its own beside it: an engine has room for some thirty.
    """
    networks = document["networks"]
    names = (KEY + "-" * count for count in range(len(networks) + 1))
    key = next(name for name in names if name not in networks)
    # Version 1, and stacks, take the newer form only in files that name a newer version.
    networks[key] = (
        {"name": network, "external": True} if is_compose_2 else {"external": {"name": network}}
    )
    services, engines_own = document["services"], _engines_own(networks)
    for name, service in services.items():
        own = as_networks(service.get("networks"))
        if service.get("network_mode") or not own.keys().isdisjoint(engines_own):
            continue
        if len(services) == 1 and list(own) == ["default"]:
            own = {}
        service["networks"] = {**own, key: {"aliases": [f"{one}.{name}" for one in stages]}}
    used = {one for service in services.values() for one in service.get("networks") or ()}
    if "default" not in used:
        networks.pop("default", None)


def as_networks(networks: object) -> dict[str, Any]:
    """Returns the networks of a service with what is said of each, also where they are a list;
    a service that names none is in that of its project."""
    if isinstance(networks, dict) and networks:
        return dict(networks)
    return dict.fromkeys(map(str, networks or ("default",)))  # type: ignore[call-overload]


def _engines_own(networks: Mapping[str, Any]) -> dict[str, str]:
    """Returns the networks of a file that an engine has by itself, by their names there."""
    own: dict[str, str] = {}
    for name, body in networks.items():
        external = (body or {}).get("external")
        named = external.get("name") if isinstance(external, dict) else None
        real = (body or {}).get("name") or named or name
        if external and real in OWN_NETWORKS:
            own[name] = real
    return own


def join_own_networks(document: dict[str, Any]) -> None:
    """Joins services to networks of the engine itself by their mode, in the document itself.

    A Swarm's services join the network `host` by its name, which an engine refuses to a
    container: as if it were one of the networks that people make.
    """
    networks: dict[str, Any] = document.get("networks") or {}
    own = _engines_own(networks)
    for service in document["services"].values():
        joined = list(service.get("networks") or ())
        if len(joined) == 1 and joined[0] in own:
            del service["networks"]
            service["network_mode"] = own[joined[0]]
    for name in own:
        if not any(
            name in (one.get("networks") or ()) for one in document["services"].values()
        ):
            del networks[name]


def name_on_engine(project: str, key: str, document: Mapping[str, Any]) -> str:
    """Returns the name that a network of a resolved file has on the engine."""
    body = (document.get("networks") or {}).get(key) or {}
    external = body.get("external")
    if isinstance(external, dict) and external.get("name"):
        return str(external["name"])
    return str(body.get("name") or (key if external else f"{project}_{key}"))


def join_options(service: str, wanted: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Returns the options with which a container joins a network."""
    given = wanted or {}
    options = [f"--alias={one}" for one in dict.fromkeys((service, *given.get("aliases", ())))]
    addresses = {"--ip": "ipv4_address", "--ip6": "ipv6_address"}
    options += [f"{one}={given[key]}" for one, key in addresses.items() if given.get(key)]
    return tuple(options)


class BlockNetworks:
    """Makes and removes the networks of runs on one engine."""

    def __init__(self, cli: Cli, runner: str, driver: str, *, is_swarm: bool) -> None:
        self._cli, self._runner = cli, runner
        self._driver, self._is_swarm = driver, is_swarm
        self._wanted: Counter[str] = Counter()  # by projects that are being made

    @contextmanager
    def wanted(self, network: str) -> Iterator[None]:
        """Keeps this worker from removing a network while a project is made in it."""
        self._wanted[network] += 1
        try:
            yield
        finally:
            self._wanted[network] -= 1
            if not self._wanted[network]:
                del self._wanted[network]

    async def make(self, network: str, tags: Tags) -> None:
        """Makes a network, unless it is there; raises CannotCreate if the engine refuses."""
        found = await self._ids(network)
        if not found:
            labels = {
                RUNNER: self._runner,
                NETWORK: self._runner,
                STORE: tags.store,
                TASK: tags.task_id,
                ATTEMPT: str(tags.attempt),
            }
            marks = [f"--label={name}={value}" for name, value in labels.items()]
            answer = await self._cli.call(
                *(self._cli.docker, "network", "create", "--driver", self._driver, *marks),
                network,
            )
            found = await self._ids(network)
            if not found:
                raise CannotCreate(f"the network of the run could not be made: {answer.words}")
        # Two workers that make it at once can make two: both keep the same one.
        for other in sorted(found)[1:]:
            await self._cli.call(self._cli.docker, "network", "rm", other)

    async def is_there(self, network: str) -> bool:
        return bool(await self._ids(network))

    async def leave(self, network: str) -> None:
        """Removes a network if no stage has a container, or on a Swarm a service, in it."""
        if self._wanted[network] or await self._is_used(network):
            return
        if not self._wanted[network]:
            # A Swarm's manager, which knows better, refuses what is in use after all.
            await self._cli.call(self._cli.docker, "network", "rm", network)

    async def unused(self, store: str) -> list[Leftover]:
        """Returns the networks of a store's runs in which nothing is, each with the attempt
        for which it was made."""
        fields = (".Name", *(f'(.Label "{label}")' for label in (STORE, TASK, ATTEMPT)))
        mark = ("--filter", f"label={NETWORK}={self._runner}")
        form = ("--format", json_format(fields))
        found = []
        for name, of_store, task, attempt in json_rows(
            await self._cli.ask("network", "ls", *mark, *form)
        ):
            is_own = of_store == store and not self._wanted[name]
            if is_own and attempt.isdecimal() and not await self._is_used(name):
                found.append(Leftover(name=name, task_id=TaskId(task), attempt=int(attempt)))
        return found

    async def _ids(self, network: str) -> list[str]:
        # A Swarm takes the name of a filter for a beginning, an engine for a part.
        mark = ("--no-trunc", "--filter", f"name={network}")
        form = ("--format", json_format((".ID", ".Name")))
        rows = json_rows(await self._cli.ask("network", "ls", *mark, *form))
        return [id_ for id_, name in rows if name == network]

    async def _is_used(self, network: str) -> bool:
        if not self._is_swarm:
            mark = ("--filter", f"network={network}")
            return bool((await self._cli.ask("ps", "--all", "--quiet", *mark)).strip())
        ids = set(await self._ids(network))
        mark = ("--filter", f"label={RUNNER}={self._runner}")
        services = (await self._cli.ask("service", "ls", "--quiet", *mark)).split()
        if not services:
            return False
        fields = (".Spec.TaskTemplate.Networks",)
        rows = await self._cli.inspect(("service", "inspect"), fields, services)
        return any(one.get("Target") in ids for (there,) in rows for one in there or ())


def is_network(name: str) -> bool:
    """Says whether a leftover is the network of a run, and no project."""
    return name.startswith(PREFIX)
