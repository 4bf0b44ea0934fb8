"""On which nodes of a Swarm a stage runs: what its file says, and what its labels mean."""

import pytest

from tidewheel.runners.containers.placement import (
    SwarmNode,
    asked_labels,
    constraints_of,
    contradiction,
    move_limits,
    place,
)
from tidewheel.runners.containers.stage_spec import BadStage, NodeLabel, StageSpec
from tidewheel.runners.containers.swarm_keys import fit_to_swarm, swarm_troubles

ANY_SENDER = NodeLabel("sender", None)
PLAIN = SwarmNode("id0", "n0", {})


def node(number, value):
    return SwarmNode(f"id{number}", f"n{number}", {"sender": value})


def document(*constraints):
    return {
        "services": {
            "a": {"image": "x", "deploy": {"placement": {"constraints": list(constraints)}}},
            "b": {"image": "x"},
        }
    }


def constraints_after(one, *added):
    place(one, added)
    services = one["services"].values()
    return [
        service.get("deploy", {}).get("placement", {}).get("constraints")
        for service in services
    ]


@pytest.mark.parametrize("value", ["true", "00", "yes"])
def test_a_label_means_the_nodes_that_have_it_with_whichever_value(value):
    placed = constraints_of(ANY_SENDER, [PLAIN, node(1, value), node(2, value)])
    assert placed.constraints == (f"node.labels.sender == {value}",)
    assert placed.note == f"label sender: the stage runs on nodes with sender={value}"


def test_where_nodes_have_several_values_the_other_nodes_are_left_out():
    placed = constraints_of(ANY_SENDER, [PLAIN, node(1, "00"), node(2, "01")])
    assert placed.constraints == ("node.id != id0",)
    assert "n1 (sender=00), n2 (sender=01)" in placed.note


def test_a_label_that_no_node_has_is_waited_for_and_told_how_to_give():
    placed = constraints_of(ANY_SENDER, [PLAIN])
    assert placed.constraints == ("node.labels.sender == true",)
    assert "docker node update --label-add sender=true NODE" in placed.note


def test_a_label_with_a_value_means_that_value():
    placed = constraints_of(NodeLabel("sender", "01"), [node(1, "00")])
    assert placed.constraints == ("node.labels.sender == 01",)


def test_where_the_file_itself_names_the_label_nothing_is_added():
    spec = StageSpec(compose="", labels=(ANY_SENDER, NodeLabel("receiver", None)))
    file = document("node.labels.sender==00", "node.role == worker")
    assert asked_labels(file, spec) == [NodeLabel("receiver", None)]
    assert asked_labels(document("node.labels.senders == 00"), spec) == list(spec.labels)


def test_constraints_are_added_to_each_service_once():
    file = document("node.role == worker")
    added = ("node.labels.sender == 00", "node.role == worker")
    assert constraints_after(file, *added) == [
        ["node.role == worker", "node.labels.sender == 00"],
        ["node.labels.sender == 00", "node.role == worker"],
    ]
    assert constraints_after(document()) == [[], None]


@pytest.mark.parametrize(
    ("constraints", "two"),
    [
        (["node.role == worker", "node.labels.a == 1"], None),
        (["node.labels.a == x", "node.labels.a==X"], None),
        (["node.labels.a == 1", "node.labels.A == 2"], None),
        (["node.labels.a != 1", "node.labels.a != 2"], None),
        (["node.labels.a == 1", "b != 1", "node.labels.a == 2"], (0, 2)),
        (["node.labels.a != 1", "node.labels.a == 1"], (1, 0)),
        (["nonsense", "", "=="], None),
    ],
)
def test_constraints_that_no_node_can_meet_together_are_found(constraints, two):
    wanted = None if two is None else (constraints[two[0]], constraints[two[1]])
    assert contradiction(constraints) == wanted


def test_a_contradiction_is_told_with_both_constraints():
    file = document("node.labels.sender == 00")
    both = r"service a: no node can meet both .*== 00' and .*== 01'"
    with pytest.raises(BadStage, match=both):
        place(file, ["node.labels.sender == 01"])


def test_what_a_swarm_does_not_know_of_a_service_is_left_out_and_told():
    document = {"services": {"a": {"pids_limit": 9, "cpuset": "0", "mem_limit": "1g"}, "b": {}}}
    assert [(one.path[-1], one.is_refused, one.seen) for one in swarm_troubles(document)] == [
        (key, False, f"services.a.{key}: a Swarm does not know this key and ignores it")
        for key in ("pids_limit", "cpuset")
    ]
    service = document["services"]["a"]
    deploy = service["deploy"] = {}
    move_limits(service, deploy)
    fit_to_swarm(document, service)
    assert service == {"deploy": {"resources": {"limits": {"memory": "1g"}}}}
