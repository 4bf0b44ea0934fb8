"""A volume that one container of a Swarm uses has no name: its node removes it by itself."""

import pytest

from tidewheel.runners.containers.engines import make_nameless

OWN = {"labels": {"tidewheel.project": "tw-x"}}


def service(*mounts, mode="replicated", **deploy):
    return {"image": "i", "volumes": list(mounts), "deploy": {"mode": mode, **deploy}}


def made(volumes, **services):
    document = {"services": services, "volumes": dict(volumes)}
    make_nameless(document, "tw-x")
    return document


@pytest.mark.parametrize(
    ("mount", "nameless"),
    [
        ("data:/data:rw", "/data"),
        ("data:/data", "/data"),
        (
            {"type": "volume", "source": "data", "target": "/d", "read_only": True},
            {"type": "volume", "target": "/d", "read_only": True},
        ),
    ],
)
def test_the_volume_of_one_container_loses_its_name(mount, nameless):
    document = made({"data": {**OWN, "name": "tw-x_data"}}, a=service(mount, "./f:/f"))
    assert document["services"]["a"]["volumes"] == [nameless, "./f:/f"]
    assert document["volumes"] == {}


def test_one_container_on_each_node_shares_nothing():
    assert made({"data": None}, a=service("data:/d", mode="global"))["volumes"] == {}


@pytest.mark.parametrize(
    "services",
    [
        {"a": service("data:/d"), "b": service("data:/d")},
        {"a": service("data:/d", "data:/e")},
        {"a": service("data:/d", replicas=2)},
        {"a": service("data:/d:ro")},
    ],
)
def test_a_volume_that_is_shared_or_only_read_keeps_its_name(services):
    before = {name: list(one["volumes"]) for name, one in services.items()}
    document = made({"data": OWN}, **services)
    assert document["volumes"] == {"data": OWN}
    assert {name: one["volumes"] for name, one in document["services"].items()} == before


@pytest.mark.parametrize(
    "body",
    [{"external": True}, {"driver": "nfs"}, {"driver_opts": {"o": "x"}}, {"name": "his"}],
)
def test_a_volume_that_is_more_than_a_place_keeps_its_name(body):
    assert made({"data": body}, a=service("data:/d"))["volumes"] == {"data": body}
