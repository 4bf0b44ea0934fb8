"""Reads what a task says to a runner of containers: a JSON object, its spec.

    {"runner": "compose", "compose": "services: …", "environment": {"NAME": "VALUE"},
     "name": "ingest", "node": {…}, "block_network": ["ingest"]}

``runner`` says whose task it is; every task that has it also requires the label of that
runner (``runner:compose``), which only workers with that runner offer. Other keys are the
job's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from tidewheel.core.queue.secret_references import NO_SECRETS, is_reference
from tidewheel.errors import Refused
from tidewheel.exact_json import encode
from tidewheel.lazy_dataclasses import NamedTuple, dataclass, pattern

COMPOSE_BYTES_MAX = 256 * 1024
CONSTRAINTS_MAX = 64
CONSTRAINT_LENGTH_MAX = 256
STAGE_TITLE = "a stage for the runner"  # in its command, for its readers
NETWORK_KEY = "block_network"  # the names of a stage in the network of its run
NETWORK_NAMES_MAX = 4
OWN_KEYS = frozenset({"runner", "compose", NETWORK_KEY})
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_STAGE_NAME = pattern(r"[A-Za-z0-9_][A-Za-z0-9_+.-]{0,199}")
_CONSTRAINT = pattern(r"[A-Za-z0-9_.\-/]+ *(==|!=) *[^\s=!][^\n\r\0]*")


class BadStage(Refused):
    """A task's spec, or its compose file, cannot be executed; carries every finding."""

    code = "bad_stage"


class NodeLabel(NamedTuple):
    """Names a label of nodes of a Swarm, and its value; None: whichever value it has."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """Holds what the spec of a stage says."""

    compose: str
    labels: tuple[NodeLabel, ...] = ()  # which nodes of a Swarm will do
    constraints: tuple[str, ...] = ()  # and what else they must be
    environment: Mapping[str, str] = field(default_factory=dict)  # of all its services
    network_names: tuple[str, ...] = ()  # in the network of its run; none: it is not in it
    rest: str = "{}"  # everything that is meant for the job, as JSON


def runner_named(spec: str | None) -> str | None:
    """Returns the name of the runner that a spec asks for, or None."""
    if spec is None or '"runner"' not in spec:  # nearly all: not worth reading
        return None
    try:
        fields = json.loads(spec)
    except (ValueError, RecursionError):
        return None
    named = fields.get("runner") if isinstance(fields, dict) else None
    return named if isinstance(named, str) else None


def read_stage_spec(spec: str) -> StageSpec:
    """Returns what the spec of a stage says; raises BadStage if it is wrong.

    The spec is JSON that names one of these runners (``runner_named``).
    """
    fields = json.loads(spec)
    compose = fields.get("compose")
    if not isinstance(compose, str) or not compose.strip():
        raise BadStage(
            'the spec has no "compose"; expected the text of a compose file with services'
        )
    size = len(compose.encode(errors="replace"))
    if size > COMPOSE_BYTES_MAX:
        raise BadStage(
            f"the compose file has {size} bytes; at most {COMPOSE_BYTES_MAX} are accepted"
        )
    rest = {key: value for key, value in fields.items() if key not in OWN_KEYS}
    labels, constraints = _node(fields.get("node"))
    return StageSpec(
        compose=compose,
        labels=tuple(labels),
        constraints=tuple(constraints),
        environment=_environment(fields.get("environment")),
        network_names=_network_names(fields.get(NETWORK_KEY)),
        rest=json.dumps(rest),
    )


def _network_names(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    names = given if isinstance(given, list) else []
    good = [one for one in names if isinstance(one, str) and _STAGE_NAME.fullmatch(one)]
    if not 0 < len(names) <= NETWORK_NAMES_MAX or len(good) < len(names):
        raise BadStage(
            f'"{NETWORK_KEY}" of the spec must be a list of 1 to {NETWORK_NAMES_MAX} '
            "names under which other stages of the run find this stage"
        )
    return tuple(good)


def _environment(given: object) -> dict[str, str]:
    if given is None:
        return {}
    pairs: Mapping[str, object] = given if isinstance(given, dict) else {"": given}
    told = {name: value for name, value in pairs.items() if isinstance(value, str)}
    if len(told) < len(pairs) or not all(map(_VARIABLE.fullmatch, told)):
        raise BadStage(
            '"environment" of the spec must be {"NAME": "VALUE"}: names of letters, '
            "digits and _, values as strings"
        )
    require_no_secrets(told)
    return told


def require_no_secrets(environment: Mapping[str, object]) -> None:
    """Raises BadStage if a container would be given a secret."""
    if any(map(is_reference, environment.values())):
        raise BadStage(NO_SECRETS.format(runner="the container engine"))


def _node(node: object) -> tuple[list[NodeLabel], list[str]]:
    """Returns the labels and the other constraints that a spec asks of nodes."""
    if node is None:
        return [], []
    if not isinstance(node, dict):
        raise BadStage(
            '"node" of the spec is not an object; expected {"labels": …, "constraints": …}'
        )
    labels = node_labels(node.get("labels") or node.get("label"))
    given = node.get("constraints") or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise BadStage(
            '"constraints" of the node is not a list of strings such as "node.role == worker"'
        )
    meant = [f"node.labels.{one.name} == {one.value or 'true'}" for one in labels]
    for one in (*meant, *given):
        if len(one) > CONSTRAINT_LENGTH_MAX or not _CONSTRAINT.fullmatch(one):
            raise BadStage(
                f"the node constraint {one!r} is not valid; expected NAME == VALUE or "
                "NAME != VALUE"
            )
    if len(meant) + len(given) > CONSTRAINTS_MAX:
        count = len(meant) + len(given)
        raise BadStage(
            f"the node has {count} constraints; at most {CONSTRAINTS_MAX} are accepted"
        )
    return labels, given


def node_labels(labels: object) -> list[NodeLabel]:
    """Returns labels of Swarm nodes, as people write them: {"zone": "a"}, "zone=a", "zone"."""
    if isinstance(labels, dict):
        pairs: Mapping[str, object] = labels
        return [NodeLabel(name, str(value)) for name, value in pairs.items()]
    listed = [labels] if isinstance(labels, str) else [] if labels is None else labels
    if not isinstance(listed, list):
        raise BadStage(f'"labels" of the node are {labels!r}; expected {{"NAME": "VALUE"}}')
    return [_one_label(str(one)) for one in listed]


def _one_label(text: str) -> NodeLabel:
    name, equals, value = text.replace("==", "=").partition("=")
    return NodeLabel(name.strip(), value.strip() if equals else None)


def stage_fields(runner: str, compose: str, rest: Mapping[str, object]) -> dict[str, str]:
    """Returns the spec and the command of a new task that is a stage.

    The label of such a task is ``runner_label``.
    """
    spec = {**rest, "runner": runner, "compose": compose}
    return {"spec": encode(spec), "command": stand_in(runner)}


def stand_in(runner: str) -> str:
    """Returns the command of a task that is a stage, which a runner of containers ignores.

    Workers claim commands, and one that offers the label without having the runner must not
    call the task done.
    """
    words = f"this task is for a worker with --runner {runner}"
    return f"# {STAGE_TITLE} {runner}\necho '{words}' >&2; exit 1"
