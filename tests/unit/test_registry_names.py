"""Names and versions of registered workflows, and which version is the highest."""

import json
import random

import pytest

from tidewheel.core.operator.registry import (
    RunRequest,
    WorkflowView,
    highest,
    in_order,
    name_problem,
    registry_text,
    split_reference,
    version_order,
    version_problem,
)

RISING = [
    "0.0.0",
    "0.9",
    "1.0-alpha",
    "1.0-beta",
    "1.0-rc1",
    "1.0-rc2",
    "1.0-rc10",
    "1.0",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0-rc1",
    "2.0.0",
    "10",
]


def view(name, version):
    return WorkflowView(
        name=name,
        version=version,
        definition="d",
        kind="sip",
        runnable=True,
        findings="[]",
        parameters="[]",
        registered_at=0.0,
        registered_by="",
    )


@pytest.mark.req("R004-9")
def test_versions_are_compared_as_people_do():
    mixed = RISING.copy()
    random.Random(4).shuffle(mixed)
    assert sorted(mixed, key=version_order) == RISING


@pytest.mark.req("R004-9")
def test_the_highest_version_is_meant_if_none_is_named():
    assert highest([view("w", one) for one in reversed(RISING)]).version == "10"
    assert highest([view("w", "1.0-rc1")]).version == "1.0-rc1"


def test_workflows_are_listed_by_name_with_the_highest_version_first():
    found = in_order([view("b", "1.0"), view("a", "1.9"), view("a", "1.10"), view("a", "1.0")])
    assert [str(one) for one in found] == ["a/1.10", "a/1.9", "a/1.0", "b/1.0"]


def test_a_reference_is_a_name_with_or_without_a_version():
    assert split_reference("vis-ingest/1.0.0") == ("vis-ingest", "1.0.0")
    assert split_reference("vis-ingest") == ("vis-ingest", "")
    assert split_reference("team/vis-ingest/v1.0") == ("team/vis-ingest", "v1.0")
    assert split_reference("team/vis-ingest") == ("team/vis-ingest", "")


def test_a_run_that_is_asked_for_names_the_version_only_if_one_was_said():
    assert str(RunRequest(workflow="vis-ingest", version="1.0.0")) == "vis-ingest/1.0.0"
    assert str(RunRequest(workflow="vis-ingest")) == "vis-ingest"
    assert registry_text("vis-ingest/1.0.0") == "vis-ingest/1.0.0 of the registry"


def test_the_same_parameters_are_the_same_text_and_none_are_no_text():
    one = RunRequest(workflow="w", parameters={"beams": 4, "area": {"b": [1], "a": "Ö"}})
    other = RunRequest(workflow="w", parameters={"area": {"a": "Ö", "b": [1]}, "beams": 4})
    assert one.parameters_text == other.parameters_text
    assert json.loads(one.parameters_text) == {"beams": 4, "area": {"a": "Ö", "b": [1]}}
    assert RunRequest(workflow="w").parameters_text == ""


@pytest.mark.parametrize("name", ["vis-ingest", "a", "x.y_z+1@b%c", "9", "a/b", "a/b/c"])
def test_good_names(name):
    assert name_problem(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        "a/",
        "/b",
        "a//b",
        "a/../b",
        "a/1.0",
        "a/run1",
        "a b",
        "..",
        ".a",
        "é",
        "a" * 201,
        "a\n",
    ],
)
def test_bad_names(name):
    assert name_problem(name)


@pytest.mark.parametrize("version", ["1", "1.0.0", "1.0.0-rc1", "2024_01+b", "runs", "v1"])
def test_good_versions(version):
    assert version_problem(version) == ""


@pytest.mark.parametrize("version", ["", "1..0", "1/2", "run1", "run27", "1" * 201, "1 ", "-1"])
def test_bad_versions(version):
    assert version_problem(version)
