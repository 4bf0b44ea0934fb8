"""`secret:NAME`: which texts are references, what a task may say in its environment."""

import json

import pytest

from tidewheel.client.fields import new_task
from tidewheel.core.queue.secret_references import (
    NAME_LENGTH_MAX,
    is_reference,
    owner_of,
    reference_findings,
    secret_named,
)
from tidewheel.core.queue.submission import SubmitLimits, refusal
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import InvalidTask, PayloadTooLarge
from tidewheel.store.rows import digest_of


@pytest.mark.parametrize(
    ("name", "owner"),
    [("db", ""), ("team-a/db", "team-a"), ("team-a/nightly/key", "team-a/nightly"), ("_x", "")],
)
def test_a_secret_is_for_the_name_that_it_is_filed_under(name, owner):
    assert is_reference(f"secret:{name}")
    assert secret_named(f"secret:{name}") == name
    assert owner_of(name) == owner


HOSTILE = [
    *("", "/", "/etc/shadow", "..", "../x", "a/../b", "a/..", "a//b", "a/", ".hidden"),
    *("a/.ssh", "-rf", "a/-x", "a b", "a\nb", "a\0b", "*", "team-*/x", "queue:a/b", "a~b"),
    *("é", "a" * (NAME_LENGTH_MAX + 1), "$(id)", "a;id", "a\\b", "%2e%2e/x"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_other_text_names_a_secret(name):
    with pytest.raises(
        ValueError, match="is not a reference to a secret; a secret is named secret:NAME"
    ):
        secret_named(f"secret:{name}")
    [finding] = reference_findings({"DB": f"secret:{name}", "OTHER": "x", "GOOD": "secret:a"})
    assert finding.startswith("DB: ")


@pytest.mark.parametrize("text", ["", "x", "Secret:x", " secret:x", "my secret:x"])
def test_a_text_that_does_not_begin_with_it_is_a_text(text):
    assert not is_reference(text)
    assert reference_findings({"X": text}) == []


def asked(environment, **said):
    fields = {"command": "true", "environment": environment} | said
    return new_task("q", fields, lambda: "a")


def findings(task):
    refused = refusal(task, SubmitLimits())
    return [] if refused is None else list(refused.findings)


def test_a_task_may_give_its_command_variables_and_references_stay_what_they_are():
    task = asked({"B": "secret:team-a/db", "A": "x"})
    assert json.loads(task.environment) == {"A": "x", "B": "secret:team-a/db"}
    assert findings(task) == []
    assert asked({}).environment is None


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "É", "TIDEWHEEL_SECRET"])
def test_a_variable_has_a_name_that_a_shell_knows_and_that_is_not_ours(name):
    [finding] = findings(asked({name: "x"}))
    assert finding.startswith(f"environment has {name!r}; expected letters")


@pytest.mark.parametrize("given", [["A=b"], "A=b", 1])
def test_an_environment_is_an_object(given):
    with pytest.raises(InvalidTask, match=r"environment is .*; expected an object"):
        asked(given)


@pytest.mark.parametrize("text", ["[]", "{", '{"A": 1}', "null", '{"A": null}'])
def test_an_environment_that_a_program_made_by_itself_is_checked_too(text):
    task = NewTask(id="a", queue="q", command="true", environment=text)
    assert findings(task) == [
        'environment is not an object of strings; expected {"NAME": "VALUE"}'
    ]


def test_bad_values_and_variables_without_a_command_are_refused():
    assert findings(asked({"A": "secret:../x"}))[0].startswith(
        "A: 'secret:../x' is not a reference"
    )
    assert "NUL" in findings(asked({"A": "x\0y"}))[0]
    bare = NewTask(id="a", queue="q", spec="1", environment='{"A": "x"}')
    assert findings(bare) == ["environment needs a command, and this task has none"]
    assert isinstance(refusal(asked({"A": "x" * 300_000}), SubmitLimits()), PayloadTooLarge)


@pytest.mark.parametrize("runner", ["slurm", "compose", "swarm"])
def test_no_secret_is_given_to_what_keeps_environments_in_clear(runner):
    said = {"runner": runner, "compose": "services: {a: {image: x}}"}
    with pytest.raises(InvalidTask, match=f"{runner} would store a secret as plain text"):
        asked({"A": "secret:x"}, **said)
    assert findings(asked({"A": "x"}, **said)) == []


def test_variables_for_containers_stand_in_their_spec():
    said = {"runner": "compose", "compose": "services: {a: {image: x}}"}
    task = asked({"A": "x", "B": "y"}, spec={"environment": {"B": "own"}}, **said)
    assert json.loads(task.spec)["environment"] == {"A": "x", "B": "own"}
    assert task.environment is None


def test_variables_are_part_of_what_a_task_says():
    assert digest_of(asked({"A": "x"})) == digest_of(asked({"A": "x"}))
    assert digest_of(asked({"A": "x"})) != digest_of(asked({"A": "y"}))
    assert digest_of(asked({})) == digest_of(NewTask(id="b", queue="q", command="true"))
