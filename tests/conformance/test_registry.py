"""The registry: a name and a version for a definition, given once, all of a call or none."""

import pytest

from tests.conformance.together import together
from tidewheel.core.operator.definition import NewRun, StoredDefinition, StoredFile
from tidewheel.core.operator.registry import NewWorkflow
from tidewheel.errors import AlreadyRegistered, NotFound


def new(name="vis", version="1.0.0", content="a", **fields):
    definition = StoredDefinition(
        digest=f"digest of {content}",
        workflow=name,
        kind="sip",
        text=f"{name}.yaml",
        files=(StoredFile("stages/a/1.0.0/run.sh", content.encode(), True),),
    )
    defaults = {"runnable": True, "registered_by": "ada"}
    return NewWorkflow(name=name, version=version, definition=definition, **(defaults | fields))


def listed(store, name=None):
    return [str(one) for one in store.workflows(name)]


@pytest.mark.req("R004-2", "R004-5")
def test_a_registered_workflow_is_found_with_everything_that_was_said_of_it(store, clock):
    said = '[{"code": "other-spelling"}]'
    asked = '[{"name": "nodes \N{SNOWMAN}"}]'
    one = new(runnable=False, findings=said, parameters=asked)
    (answer,) = store.register([one])
    assert (answer.name, answer.version, answer.is_new) == ("vis", "1.0.0", True)
    view = store.workflow("vis", "1.0.0")
    assert (view.definition, view.kind) == ("digest of a", "sip")
    assert (view.runnable, view.findings, view.parameters) == (False, said, asked)
    assert (view.registered_at, view.registered_by) == (clock.now, "ada")
    assert store.workflows() == [view]
    assert store.definition(view.definition) == one.definition


def test_where_the_files_came_from_is_kept(store):
    said = '{"url": "git+https://h.org/vis.git", "ref": "v1"}'
    store.register([new(source=said), new(version="2.0.0", content="b")])
    assert store.workflow("vis", "1.0.0").source == said
    assert [one.source for one in store.workflows("vis")] == [said, ""]
    store.register([new(source="another")])
    assert store.workflow("vis", "1.0.0").source == said


@pytest.mark.req("R004-6")
def test_the_same_again_changes_nothing(store, clock):
    store.register([new()])
    before = store.workflow("vis", "1.0.0")
    clock.advance(10)
    (answer,) = store.register([new(registered_by="grace", runnable=False)])
    assert not answer.is_new
    assert store.workflow("vis", "1.0.0") == before


@pytest.mark.req("R004-6", "R004-7")
def test_other_content_is_refused_and_nothing_of_the_call_is_stored(store):
    store.register([new(), new(version="2.0.0")])
    wanted = [
        new("first"),
        new(content="b"),
        new(version="2.0.0", content="b"),
        new("last", content="c"),
    ]
    with pytest.raises(AlreadyRegistered, match=r"vis/1\.0\.0, vis/2\.0\.0") as refused:
        store.register(wanted)
    assert refused.value.workflows == ("vis/1.0.0", "vis/2.0.0")
    assert listed(store) == ["vis/1.0.0", "vis/2.0.0"]
    with pytest.raises(NotFound):
        store.definition("digest of c")


def test_two_of_one_call_that_differ_are_refused(store):
    with pytest.raises(AlreadyRegistered):
        store.register([new(), new(content="b")])
    assert listed(store) == []


@pytest.mark.req("R004-9")
def test_versions_stand_side_by_side(store):
    versions = ("1.0.0", "1.0.1", "2.0.0-rc1")
    store.register([new(version=one, content=one) for one in versions])
    store.register([new("vista"), new("Zeta")])
    assert listed(store, "vis") == [f"vis/{one}" for one in versions]
    assert listed(store, "nobody") == []
    assert listed(store) == ["Zeta/1.0.0", *(f"vis/{one}" for one in versions), "vista/1.0.0"]
    assert store.workflows(count=2) == store.workflows()[:2]


@pytest.mark.req("R004-10")
def test_one_version_is_removed_and_the_others_stay(store):
    store.register([new(), new(version="1.1.0", content="b"), new("other")])
    gone = store.remove_workflow("vis", "1.0.0")
    assert str(gone) == "vis/1.0.0"
    assert listed(store) == ["other/1.0.0", "vis/1.1.0"]
    for name, version in (("vis", "1.0.0"), ("nobody", "1"), ("vis", "")):
        with pytest.raises(NotFound):
            store.remove_workflow(name, version)
        with pytest.raises(NotFound):
            store.workflow(name, version)


@pytest.mark.req("R004-10")
def test_a_run_keeps_its_definition_when_the_workflow_is_removed(store):
    one = new()
    store.register([one])
    run = store.create_run(NewRun(workflow="vis", definition=one.definition.digest))
    store.remove_workflow("vis", "1.0.0")
    assert store.definition(store.run(run.number).definition) == one.definition
    (again,) = store.register([new(content="other")])
    assert again.is_new
    assert store.definition(store.run(run.number).definition) == one.definition


def test_the_definition_of_a_registered_workflow_stays_however_old_it_is(store, clock):
    store.register([new()])
    clock.advance(100.0)
    assert store.delete_definitions(50.0, 10) == 0
    store.remove_workflow("vis", "1.0.0")
    assert store.delete_definitions(50.0, 10) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_of_many_who_register_different_content_at_once_one_wins(world):
    def register(content, *names):
        def attempt(door):
            try:
                return all(
                    one.is_new
                    for one in door.register([new(n, content=content) for n in names])
                )
            except AlreadyRegistered:
                return False

        return attempt

    answers = together(
        world,
        register("0", "a", "b"),
        register("1", "b", "a"),
        register("2", "a", "b"),
        register("3", "b", "a"),
    )
    assert sorted(answers) == [False, False, False, True]
    winner = f"digest of {answers.index(True)}"
    assert [one.definition for one in world.open().workflows()] == [winner, winner]


@pytest.mark.parametrize(
    ("first", "again", "kept"),
    [
        (("team-a",), None, None),
        (("team-a",), ("*",), ("*",)),
        (("team-a/x",), ("team-b", "team-a"), ("team-b", "team-a")),
        (("team-a",), ("team-a/x",), ("team-a",)),
        (("team-a",), ("team-b",), ("team-a",)),
        (None, ("*",), None),
    ],
)
def test_what_is_registered_again_is_of_who_sees_more(store, first, again, kept):
    """H4: the code is the same, and who brings it stands for it."""
    store.register([new(sees=first)])
    (answer,) = store.register([new(sees=again)])
    assert not answer.is_new
    assert store.workflow("vis", "1.0.0").sees == kept
