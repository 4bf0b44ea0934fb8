"""Whether a stage can run on a Swarm: what no Swarm does of its file is told before it runs."""

import pytest

from tests.support.sips import definition, found, needs, service, sip, stage
from tidewheel.core.graph.findings import WORKER_NEEDS, Severity
from tidewheel.formats.sip.validation import validate
from tidewheel.services.definitions.sip import note_needs

FILE = "stages/a/1.0.0/docker_compose.yaml"
HEAD = "version: '3.7'\nservices:\n  other: {image: busybox}\n  work:\n    image: busybox\n"


def judged(lines, nodes="{type: nodes, number: 2, flavour: x, exclusive: false}", more=""):
    """A stage with these lines in its service; line 6 of its file is the first of them."""
    own = "".join(f"    {line}\n" for line in lines)
    asked = stage("a").replace("required: []", f"required: [{nodes}]")
    compose = {"docker_compose.yaml": HEAD + own + more}
    source = sip(definition(asked), {"a": compose})
    judgement = validate(source)
    note_needs(judgement, source)
    return judgement


def told(judgement):
    return [
        (one.position.line, one.message, one.hint)
        for one in found(judgement.obstacles, Severity.ERROR)
    ]


REFUSED = {
    "group_add: ['7']": (6, "services.work.group_add: a Swarm does not know this key"),
    "runtime: runc": (6, "services.work.runtime: a Swarm does not know this key"),
    "dns_opt: ['ndots:2']": (6, "services.work.dns_opt: a Swarm does not know this key"),
    "privileged: true": (6, "the containers run without what it asks for"),
    "devices: ['/dev/null:/dev/x']": (6, "the containers run without what it asks for"),
    "security_opt: [no-new-privileges]": (6, "isolates its containers differently"),
    "network_mode: none": (6, "ignores this key and uses another network"),
    "network_mode: service:other": (6, "ignores this key and uses another network"),
    "pid: host": (6, "services.work.pid: a Swarm ignores this key"),
    "ipc: service:other": (6, "services.work.ipc: a Swarm ignores this key"),
    "links: ['other:db']": (6, "no service is found as db"),
    "depends_on: {other: {condition: service_healthy}}": (6, "starts all services at once"),
    "networks: {default: {priority: 3}}": (6, "networks.default.priority: a Swarm does not"),
    "deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}": (
        6,
        "deploy.resources.reservations.devices: a Swarm does not know",
    ),
    "deploy: {placement: {constraints: [node.labels.zone]}}": (6, "which no Swarm can read"),
    "deploy: {placement: {constraints: [node.zone == a]}}": (6, "which no Swarm can read"),
    "deploy: {placement: {constraints: [node.role == worker, node.role != worker]}}": (
        6,
        "no node can meet both 'node.role == worker' and 'node.role != worker'",
    ),
}


@pytest.mark.req("R004-49")
@pytest.mark.parametrize("line", REFUSED)
def test_what_no_swarm_does_keeps_a_stage_for_a_swarm_from_running(line):
    place, words = REFUSED[line]
    judgement = judged([line])
    ((at, message, hint),) = told(judgement)
    assert (at, words in message) == (place, True), message
    assert hint.endswith("ask for one node, without a label: then one engine runs the stage")
    assert judgement.registrable and not judgement.runnable


@pytest.mark.parametrize("line", [one for one in REFUSED if "constraint" not in one])
def test_the_same_file_runs_on_one_engine_and_says_that_it_needs_one(line):
    judgement = judged([line], nodes="{type: nodes, number: 1, flavour: x, exclusive: false}")
    assert judgement.runnable
    notes = [one for one in judgement.findings if one.code == WORKER_NEEDS]
    needed = "stage a needs a worker with a single container engine (--runner compose)"
    assert needed in [one.message for one in notes]


@pytest.mark.parametrize(
    "line",
    [
        *("cpuset: '0'", "pids_limit: 100", "mac_address: 02:42:ac:11:65:43"),
        *("depends_on: [other]", "networks: {default: {ipv4_address: 10.0.0.9}}"),
    ],
)
def test_what_a_swarm_leaves_out_of_a_container_is_a_warning(line):
    judgement = judged([line])
    (warning,) = found(judgement.findings, Severity.WARNING)
    assert (warning.code, warning.position.line) == ("swarm-key", 6)
    assert judgement.runnable


@pytest.mark.parametrize(
    "line",
    [
        *("network_mode: host", "network_mode: bridge", "shm_size: 64m", "privileged: false"),
        *("ipc: private", "links: [other]", "mem_limit: 64m", "expose: ['80']"),
        *("cap_add: [NET_ADMIN]", "sysctls: {net.ipv4.ip_forward: 1}", "restart: always"),
        "deploy: {placement: {constraints: [node.role == worker, 'node.labels.a != x y']}}",
    ],
)
def test_what_a_swarm_does_is_not_told(line):
    judgement = judged([line])
    assert judgement.runnable
    assert found(judgement.findings, Severity.WARNING) == []


def test_a_network_of_one_host_is_refused_where_a_service_is_in_it():
    for key in ("driver: bridge", "enable_ipv6: true", "ipam: {options: {a: b}}"):
        network = f"networks:\n  inner:\n    {key}\n"
        ((at, message, _),) = told(judged(["networks: [inner]"], more=network))
        assert at == 9 and "networks.inner" in message
        assert judged([], more=network).runnable


@pytest.mark.req("R004-18", "R004-49")
@pytest.mark.parametrize(
    ("label", "constraint", "is_told"),
    [
        ("sender=00", "node.labels.sender == 01", True),
        ("sender=00", "node.labels.sender != 00", True),
        ("sender=00", "node.labels.sender == 00", False),
        ("sender=00", "node.labels.receiver == 01", False),
        ("sender", "node.labels.sender == 01", False),
    ],
)
def test_a_label_that_contradicts_a_constraint_of_the_file_is_told_before_the_run(
    label, constraint, is_told
):
    lines = ["deploy:", "  placement:", "    constraints:", f"      - {constraint}"]
    judgement = judged(
        lines, nodes=f"{{type: nodes, number: 1, flavour: x, exclusive: false, label: {label}}}"
    )
    if not is_told:
        assert judgement.runnable
        return
    ((at, message, hint),) = told(judgement)
    both = f"'{constraint}' and 'node.labels.sender == 00'"
    wanted = f"services.work: no node can meet both {both}"
    assert (at, message) == (8, f"{wanted} (stage a)") or "== 00" in message
    assert hint.startswith("remove one of the constraints, or the label of the stage")


def test_all_that_no_swarm_does_is_told_at_once_and_nothing_of_a_stage_that_is_switched_off():
    lines = ["group_add: ['7']", "runtime: runc", "privileged: true", "cpuset: '0'"]
    assert [at for at, _, _ in told(judged(lines))] == [6, 7, 8]
    off = stage("a", more="when: false")
    text = definition(
        off.replace(
            "required: []", "required: [{type: nodes, number: 2, flavour: x, exclusive: false}]"
        )
    )
    compose = {"docker_compose.yaml": HEAD + "    privileged: true\n"}
    source = sip(text, {"a": compose})
    judgement = validate(source)
    note_needs(judgement, source)
    assert judgement.runnable


@pytest.mark.req("R004-50")
def test_a_network_that_is_an_overlay_needs_a_swarm_since_an_engine_in_none_cannot_make_it():
    overlay = "networks: {lab: {driver: overlay, attachable: true}}\n"
    told = needs(service("networks: [lab]") + overlay)
    assert "stage a needs a worker for a Swarm (--runner swarm)" in told
    for own in ("init: true", "privileged: true\n    networks: [lab]"):  # unused; no Swarm's
        told = needs(service(own) + overlay)
        assert not any("for a Swarm" in one for one in told), told


@pytest.mark.req("R004-50")
@pytest.mark.parametrize(("ports", "needs_swarm"), [("8080:80", True), ("80", False)])
def test_replicas_that_share_a_port_of_the_host_need_a_swarm(ports, needs_swarm):
    told = needs(service(f"ports: ['{ports}']\n    deploy: {{replicas: 2}}"))
    assert needs_swarm == ("stage a needs a worker for a Swarm (--runner swarm)" in told)


@pytest.mark.req("R004-49")
def test_a_network_with_a_name_that_no_swarm_takes_needs_an_engine_of_its_own():
    for length, fits in ((49, True), (50, False)):
        name = "n" * length
        told = needs(service(f"networks: [{name}]") + f"networks: {{{name}: }}\n")
        assert fits != any("a single container engine (--runner" in one for one in told)
