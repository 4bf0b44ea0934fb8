"""`process.map(find())` in Python means what a parameter made of a list means (issue 19).

And the mistakes that people make with it are refused with what to write instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tidewheel import Workflow
from tidewheel.core.graph.definition import CYLC8, MappedOver
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.graph.graph import meaning
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.workflow import LoadOptions, load_workflow
from tidewheel.formats.python_api import BadStatement, InvalidDefinition, ReadOptions
from tidewheel.testing import failed, play

NOW = 1_900_000_000.0


def find(place: str = "here") -> list[str]:
    return [place]


def listing() -> dict[str, list[str]]:
    return {}


def fetch() -> int:
    return 1


def process(file: str, scale: int = 1) -> int:
    return len(file) * scale


def check(path: str):
    pass


def plot(rows: int, color: str = "red"):
    pass


def draw(file: str, rows: int):
    pass


def summary(results: list[int]) -> int:
    return sum(results)


def unnamed(results):
    return results


def untyped(row, more):
    return row, more


def made(*functions, **how):
    """A workflow with these functions as its tasks."""
    flow = Workflow("w", **how)
    return (flow, *(flow.task(one) for one in functions))


def read(text: str, tmp_path):
    (tmp_path / "flow.cylc").write_text(text)
    findings = Findings()
    loaded = load_workflow(tmp_path, LoadOptions(now=NOW, name="w"), findings)
    assert [str(one) for one in findings if one.severity is Severity.ERROR] == []
    return loaded


def means_the_same(flow: Workflow, graph: str, tmp_path, parameters: str, head: str = ""):
    """Compares a workflow with a flow.cylc that somebody wrote, and with what is kept of it."""
    options = ReadOptions(now=NOW)
    ours = flow.compile(options).graph
    text = (
        f"[scheduler]\nallow implicit tasks = True\n[task parameters]\n{parameters}\n"
        f"[scheduling]\n{head}\n[[graph]]\n{graph}\n[runtime]\n"
    )
    theirs = read(text, tmp_path).graph
    assert meaning(ours) == meaning(theirs)
    assert ours.mapped == theirs.mapped
    kept = read(flow.flow_text(options), tmp_path)
    assert meaning(kept.graph) == meaning(ours)
    assert kept.workflow.mapped == flow.definition(options).mapped
    assert kept.workflow.inputs == flow.definition(options).inputs


# ---- what it means ----


def test_a_map_is_a_parameter_made_of_what_a_task_returns(tmp_path):
    flow, listed, work, total = made(find, process, summary)
    total(work.map(listed(), scale=3))
    means_the_same(
        flow, 'R1 = "find => process<file> => summary"', tmp_path, "file = find.return"
    )
    assert flow.definition().mapped == {
        "process<file>": MappedOver("file", "find", "return", 1000)
    }


def test_a_map_may_be_over_a_value_of_a_script_with_a_bound(tmp_path):
    flow, work = made(process)
    script = flow.task("list", script="true")
    work.map(script.value("files"), max=50)
    means_the_same(flow, "R1 = list => process<file>", tmp_path, "file = list.files max 50")


def test_each_element_waits_for_its_own_in_a_chain_of_maps(tmp_path):
    flow, listed, work, picture, total = made(find, process, plot, summary)
    results = work.map(listed())
    total(picture.map(results))
    means_the_same(
        flow,
        'R1 = "find => process<file> => plot<file> => summary"',
        tmp_path,
        "file = find.return",
    )


def test_two_tasks_that_are_mapped_over_one_list_go_together_by_element(tmp_path):
    flow, listed, work, picture = made(find, process, draw)
    files = listed()
    picture.map(files, work.map(files))
    means_the_same(
        flow,
        'R1 = """find => process<file>\nfind & process<file> => draw<file>"""',
        tmp_path,
        "file = find.return",
    )


def test_other_arguments_are_the_same_for_each_element(tmp_path):
    flow, listed, one, work = made(find, fetch, process)
    work.map(listed(), one())
    means_the_same(flow, 'R1 = "find & fetch => process<file>"', tmp_path, "file = find.return")
    assert dict(flow.definition().nodes["process<file>"].inputs) == {
        "TIDEWHEEL_ARGUMENT_scale": "fetch"
    }


def test_the_first_argument_is_the_list_also_by_its_name():
    flow, picture = made(draw)
    picture.map(rows=flow.task("list", script="true").value("rows"), file="x")
    assert list(flow.definition().mapped) == ["draw<rows>"]


def test_a_map_stands_in_a_cycle_and_a_join_is_at_each_point(tmp_path):
    flow, listed, work, total = made(find, process, summary, initial=1, final=3)
    with flow.cycle("P1"):
        results = work.map(listed())
        total(results.optional)
        results[-1].all.succeeded.optional >> work
        results.any.failed.optional >> flow.task("mail", script="true")
    means_the_same(
        flow,
        'P1 = """find & process<file>[-P1]:succeed-all? => process<file>? => summary\n'
        'process<file>:fail-any? => mail"""',
        tmp_path,
        "file = find.return",
        "cycling mode = integer\ninitial cycle point = 1\nfinal cycle point = 3",
    )


def test_all_elements_may_end_either_way(tmp_path):
    flow, listed, work = made(find, process)
    with flow.cycle("R1"):
        work.map(listed()).all.finished >> flow.task("clean", script="true")
    means_the_same(
        flow,
        'R1 = "find => process<file>:finish-all => clean"',
        tmp_path,
        "file = find.return",
    )


def test_a_script_is_mapped_by_the_name_of_its_variable(tmp_path):
    flow, listed = made(find)
    work = flow.task("work", script="echo $CYLC_TASK_PARAM_file")
    again = flow.task("again", script="echo $ROWS", inputs={"ROWS": "work.rows"})
    again.map(work.map(file=listed(), max=5))
    flow.limit("few", 2, [work])
    means_the_same(
        flow,
        'R1 = "find => work<file> => again<file>"\n[[queues]]\n[[[few]]]\nlimit = 2\n'
        "members = work<file>",
        tmp_path,
        "file = find.return max 5",
    )
    assert dict(flow.definition().nodes["again<file>"].inputs) == {"ROWS": "work<file>.rows"}


def test_a_mapped_task_can_be_named_before_it_is_mapped(tmp_path):
    flow, listed, work = made(find, process)
    with flow.cycle("R1"):
        work >> flow.task("after", script="true")
        flow.task("before", script="true") >> work
        work.map(listed())
    means_the_same(
        flow,
        'R1 = """before & find => process<file> => after"""',
        tmp_path,
        "file = find.return",
    )


def test_lists_whose_parameters_have_one_name_are_told_apart():
    flow, listed, work = made(find, process)
    other = flow.task("other-files")(find)
    again = flow.task("again")(process)
    third = flow.task("third")(process)
    work.map(listed())
    again.map(other())
    third.map(flow.task("x2", script="true").value("a"))
    assert list(flow.definition().mapped) == [
        "process<file>",
        "again<file_of_other_files>",
        "third<file_of_x2_>",
    ]
    assert flow.flow_text()


def test_settings_families_and_limits_are_those_of_the_mapped_task():
    flow, listed = made(find)
    heavy = flow.family("HEAVY", retries=2)
    work = flow.task(family=heavy, environment={"A": "b"})(process)
    results = work.map(listed())
    flow.limit("few", 2, [results])
    node = flow.definition().nodes["process<file>"]
    assert node.lineage == ("process<file>", "HEAVY", "root")
    assert node.scripts.main.endswith(" process")
    [few] = [one for one in flow.definition().limit_groups if one.name == "few"]
    assert few.members == ("process<file>",)
    assert "[[process<file>]]" in flow.flow_text()


def test_the_same_map_may_be_said_twice_in_two_cycles():
    flow, listed, work = made(find, process, initial=1, final=2)
    for cycle in ("R1/1", "R1/2"):
        with flow.cycle(cycle):
            work.map(listed())
    assert list(flow.definition().mapped) == ["process<file>"]


@pytest.mark.parametrize(
    ("item", "how"),
    [
        ("clock-trigger = process<file>(PT1H)", {"wait_for_clock": "PT1H"}),
        ("clock-expire = process<file>(PT6H)", {"expire_after": "PT6H"}),
        (
            'external-trigger = process<file>("it is there")',
            {"wait_for_message": "it is there"},
        ),
    ],
)
def test_the_elements_of_a_list_may_be_special_tasks(tmp_path, item, how):
    flow, listed = made(find, cycling="gregorian", initial="20300101T00Z", final="+P1D")
    with flow.cycle("P1D"):
        flow.task(**how)(process).map(listed())
    head = "initial cycle point = 20300101T00Z\nfinal cycle point = +P1D\n"
    means_the_same(
        flow,
        f"P1D = find => process<file>\n[[special tasks]]\n{item}",
        tmp_path,
        "file = find.return",
        head,
    )
    played = play(flow)
    assert [one.waited_for for one in played.tries("20300102T0000Z/process_file1")] == [
        {"wait_for_clock": "clock", "wait_for_message": "xtrigger"}.get(*how, "parent")
    ]


@st.composite
def workflows(draw_one) -> Workflow:
    """A workflow of sources, maps over them and over each other, joins and arrows."""
    flow = Workflow("w", initial=1, final=3)
    number = draw_one(st.integers(1, 3))
    sources = [flow.task(f"s{one}", script="true") for one in range(number)]
    lists = [one.value(draw_one(st.sampled_from(["a", "b-c"]))) for one in sources]
    mapped: list = []
    with flow.cycle(draw_one(st.sampled_from(["P1", "R1", "R2/P2"]))):
        for one in range(draw_one(st.integers(1, 4))):
            over = draw_one(st.sampled_from([*lists, *mapped]))
            task = flow.task(f"m{one}_x")(untyped)
            constant = draw_one(st.sampled_from([1, "text", sources[0]]))
            mapped.append(task.map(over, constant))
        for one in range(draw_one(st.integers(0, 3))):
            all_of_it = draw_one(st.sampled_from(mapped))
            ways = [all_of_it, all_of_it.value("n"), all_of_it[-1], all_of_it.all]
            flow.task(f"j{one}_x")(unnamed)(draw_one(st.sampled_from(ways)))
        for one in range(draw_one(st.integers(0, 3))):
            left, right = (draw_one(st.sampled_from(mapped)) for _ in range(2))
            end = draw_one(st.sampled_from([left.all, left[-1].all, left.any.started]))
            end >> (right if left is not right else flow.task(f"e{one}", script="true"))
    if draw_one(st.booleans()):
        flow.limit("few", 2, draw_one(st.lists(st.sampled_from(mapped), unique_by=str)))
    return flow


@given(workflows())
def test_whatever_is_mapped_is_written_as_a_flow_cylc_that_means_the_same(flow):
    try:
        graph = flow.compile().graph
    except InvalidDefinition as refused:  # such as elements that wait for each other
        event(refused.findings[0].code)
        return
    event("written")
    with TemporaryDirectory() as folder:
        kept = read(flow.flow_text(), Path(folder)).graph
    assert meaning(kept) == meaning(graph)
    assert kept.mapped == graph.mapped
    assert graph.mapped


# ---- mistakes ----


def wrong(say) -> str:
    with pytest.raises(BadStatement) as refused:
        say()
    return str(refused.value)


def test_a_list_that_is_written_down_is_refused_with_what_to_write():
    _, work = made(process)
    said = wrong(lambda: work.map(["a", "b"]))
    assert "process.map(['a', 'b']): expected a task that returns a list" in said
    assert "'def find(): return ['a', 'b']', then process.map(find())" in said


def test_a_map_needs_a_list():
    _, work = made(process)
    assert "process.map() is given no list" in wrong(work.map)


def test_a_list_of_another_point_is_refused():
    flow, listed, work = made(find, process, initial=1)
    with flow.cycle("P1"):
        said = wrong(lambda: work.map(listed[-1]))
    assert "the list belongs to another cycle point" in said


def test_what_has_no_value_is_refused():
    _, listed, work = made(find, process)
    assert "find.failed has no value" in wrong(lambda: work.map(listed.failed))


def test_an_element_of_another_list_is_refused():
    flow, listed, work, picture = made(find, process, draw)
    dirs = flow.task("dirs")(find)
    results = work.map(listed())
    said = wrong(lambda: picture.map(dirs(), results))
    assert "process are elements of another list or point" in said
    assert "gathered(process)" in said


def test_single_elements_of_another_point_are_refused():
    flow, listed, work, picture = made(find, process, draw, initial=1)
    with flow.cycle("P1"):
        files = listed()
        results = work.map(files)
        said = wrong(lambda: picture.map(files, results[-1]))
        assert "elements of another list or point" in said
        assert "another cycle point" in wrong(lambda: picture.map(results[-1], 1))


def test_a_task_is_mapped_over_one_list_only():
    flow, listed, work = made(find, process)
    dirs = flow.task("dirs")(find)
    work.map(listed())
    assert "mapped a second time" in wrong(lambda: work.map(dirs()))
    assert "called a second time, with other arguments" in wrong(
        lambda: work.map(listed(), scale=2)
    )


def test_a_task_is_either_called_or_mapped():
    _, listed, work, picture = made(find, process, plot)
    work.map(listed())
    assert "is mapped over a list, and called once as well" in wrong(lambda: work("x"))
    picture(1)
    assert "called once, and mapped" in wrong(lambda: picture.map(work))


def test_a_list_has_one_bound_from_1_to_10000():
    _, listed, work, other = made(find, process, check)
    assert "is not a valid maximum" in wrong(lambda: work.map(listed(), max=0))
    assert "is not a valid maximum" in wrong(lambda: work.map(listed(), max=10_001))
    assert "is not a valid maximum" in wrong(lambda: work.map(listed(), max=True))
    work.map(listed(), max=5)
    assert "the list has max=5 already" in wrong(lambda: other.map(listed(), max=6))
    other.map(listed())


def test_a_map_over_what_a_task_returns_stands_before_nobody_maps_that_task():
    _, listed, work, picture = made(find, process, plot)
    picture.map(work)
    assert "comes after another task is mapped over process" in wrong(
        lambda: work.map(listed())
    )


def test_all_or_any_elements_are_no_list():
    _, listed, work, picture, total = made(find, process, plot, summary)
    results = work.map(listed())
    assert "maps over all elements at once" in wrong(lambda: picture.map(results.all))
    assert "has no value" in wrong(lambda: total(results.any))


def test_a_script_says_how_its_variable_is_called():
    flow, listed, work = made(find, process)
    shell = flow.task("shell", script="true")
    assert "shell.map(file=find)" in wrong(lambda: shell.map(listed()))
    assert "has several arguments" in wrong(lambda: shell.map(file=listed(), x=3))
    work.map(listed())
    assert "an element of this list is called file" in wrong(lambda: shell.map(path=listed()))
    other = flow.task("b", script="true").value("x")
    assert "its last character is a digit" in wrong(lambda: shell.map(a1=other))
    assert "characters that no variable can have" in wrong(lambda: shell.map(größe=other))
    assert "that name is taken" in wrong(lambda: shell.map(file=other))
    assert "that name is taken" in wrong(lambda: shell.map(templates=other))


def test_a_parameter_is_called_so_that_a_variable_can_be():
    def measure(größe: int, templates: int = 1) -> None:  # noqa: PLC2401 - people may
        pass

    measure.__qualname__ = "measure"
    flow = Workflow("w")
    number = flow.task("list", script="true")
    flow.task("a")(measure).map(number.value("sizes"))
    flow.task("b")(measure).map(templates=number.value("templates"), größe=3)
    assert list(flow.definition().mapped) == ["a<gr__e>", "b<templates_of_list>"]
    assert flow.flow_text()


def test_a_list_is_returned_by_a_task_that_a_parameter_can_name():
    flow, work = made(process)
    said = wrong(lambda: work.map(flow.task("1list", script="true").value("x")))
    assert "1list cannot be the name of a task that returns a list" in said


def test_a_list_of_another_workflow_is_refused():
    _, listed = made(find)
    _, work = made(process)
    assert "belongs to the workflow" in wrong(lambda: work.map(listed))


def test_a_parameter_called_max_cannot_be_told_from_the_bound():
    def most(max: int) -> None:
        pass

    most.__qualname__ = "most"
    flow, listed = made(find)
    work = flow.task("most")(most)
    assert "has a parameter max, too" in wrong(lambda: work.map(listed(), max=3))


def test_arguments_that_do_not_fit_are_refused():
    _, listed, work = made(find, process)
    assert "process cannot be called like this" in wrong(lambda: work.map(listed(), size=3))
    assert "process cannot be called like this" in wrong(lambda: work.map(listed(), 1, 2))


def test_a_value_has_a_name():
    _, listed = made(find)
    assert "is not a valid name of a value" in wrong(lambda: listed.value("a b"))


def test_an_output_of_its_own_is_asked_of_all_elements_without_all():
    _, listed, work = made(find, process)
    results = work.map(listed())
    said = wrong(lambda: results.all.output("x"))
    assert "write process.output('x'), which means all elements" in said


def errors(flow: Workflow, **how) -> list[str]:
    found = flow.findings(ReadOptions(now=NOW, **how))
    return [f"{one.code}: {one.message}" for one in found if one.severity is Severity.ERROR]


def test_an_end_of_elements_says_of_how_many():
    flow, listed, work = made(find, process)
    results = work.map(listed())
    with flow.cycle("R1"):
        results.failed.optional >> flow.task("mail", script="true")
    assert errors(flow) == [
        "mapped-task: process.failed does not say if all or any of process<file> are meant"
    ]


def test_types_that_differ_are_found():
    flow, several, number, listed, work, total = made(listing, fetch, find, process, summary)
    returns_no_list = flow.task("a")(process)
    returns_no_list.map(number())
    takes_other = flow.task("b")(plot)
    takes_other.map(listed())
    one = flow.task("c")(plot)
    one(work.map(listed()))
    takes_text = flow.task("d")(draw)
    takes_text.map(work, 3)
    right = flow.task("e")(process)
    right.map(several().value("files"))
    total(work)
    assert errors(flow) == [
        "wrong-type: a.map(file=fetch): fetch returns int, not a list",
        "wrong-type: b.map(rows=find): an element of find is str, but rows is int",
        "wrong-type: c(rows=process): it gets a list of the values of process, but rows is int",
        "wrong-type: d.map(file=process): process returns int, but file is str",
    ]


def test_a_dict_is_mapped_over_by_the_name_of_its_list():
    def returns_dict() -> dict:
        return {}

    returns_dict.__qualname__ = "returns_dict"
    flow, work = made(process)
    work.map(flow.task("x")(returns_dict)())
    assert errors(flow) == [
        "wrong-type: process.map(file=x): x returns dict, not a list; name the list: "
        "x.value(NAME)"
    ]


def test_what_flow_cylc_refuses_is_refused():
    flow, listed = made(find, initial=1)
    work = flow.task(sequential=True)(process)
    with flow.cycle("P1"):
        work.map(listed())
    assert "is sequential" in errors(flow)[0]
    flow, listed, work = made(find, process)
    work.map(listed())
    assert "Cylc 8 has no mapped tasks" in errors(flow, policy=CYLC8)[0]
    flow, listed, work = made(find, process)
    work.map(listed())
    with flow.cycle("R1"):
        flow.task("process_file3", script="true") >> flow.task("b", script="true")
    assert "has the name of an element" in errors(flow)[0]
    flow, listed, work = made(find, process)
    results = work.map(listed())
    with flow.cycle("R1"):
        flow.task("b", script="true") >> ~results
    assert "a mapped task cannot be removed" in errors(flow)[0]


def test_a_source_that_is_a_run_of_a_workflow_is_refused():
    flow, work = made(process)
    work.map(flow.task("inner", workflow="imaging/1").value("files"))
    with pytest.raises(InvalidDefinition, match="is a run"):
        flow.definition()


# ---- in a test of the author ----


def shop():
    flow, listed, work, picture, total = made(find, process, plot, unnamed)
    results = work.map(listed(), scale=2)
    picture.map(results)
    total(results)
    return flow


def test_a_played_element_has_its_arguments_and_a_join_all_values():
    played = play(
        shop(),
        values={"find": ["a", "5"], "process_file0": 2, "process_file1": {"x": 1}, "plot": 0},
    )
    assert played.status == "completed"
    assert played["1/process_file0"].arguments == {"file": "a"}
    assert played["1/process_file1"].arguments == {"file": "5"}
    assert played["1/plot_file1"].arguments == {"rows": {"x": 1}}
    assert played["1/unnamed"].arguments == {"results": [2, {"x": 1}]}


def test_a_played_list_may_be_empty():
    played = play(shop(), values={"find": []})
    assert played.status == "completed"
    assert played["1/unnamed"].arguments == {"results": []}
    assert played.order == ["1/find", "1/unnamed"]


def test_the_outcome_of_one_element_can_be_given():
    values = {"find": ["a", "b", "c"], "process": 1, "plot": 1}
    played = play(shop(), values=values, outcomes={"process_file1": failed()})
    assert played.status == "stalled"
    assert not played.ran("1/unnamed")
    assert [played.ran(f"1/plot_file{n}") for n in range(3)] == [True, False, True]
    assert list(played.stalled) == ["1/process_file1"]
    assert played.unused == []


def test_outcomes_and_lengths_of_all_elements_are_by_the_name_of_the_task_or_a_pattern():
    values = {"find": ["a", "b"], "process": 1, "plot": 1}
    for name in ("process", "process<file>", "1/process", "process_file*"):
        assert play(shop(), values=values, outcomes={name: failed()}).status == "stalled"
    for name in ("process", "process<file>", "process_file*"):
        lengths = {name: "1h", "process_file1": "2h"}
        played = play(shop(), values=values, lengths=lengths)
        assert played["1/process_file0"].end_seconds == 3610
        assert played["1/process_file1"].end_seconds == 7210


def test_an_outcome_of_an_element_that_the_list_lacks_is_told():
    played = play(shop(), values={"find": []}, outcomes={"process_file7": failed()})
    assert played.unused == ["*/process_file7"]
    with pytest.raises(Refused, match="no task 'process_files'"):
        play(shop(), outcomes={"process_files": failed()})
    with pytest.raises(Refused, match="no task 'process_file1000'"):
        play(shop(), outcomes={"process_file1000": failed()})


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (
            {"files": ["a"], "unit": 1},
            "returned no list, which process<file>, plot<file> needs; "
            "it returned only files, unit",
        ),
        ("a", "returned no list, which process<file>, plot<file> needs"),
        (["a"] * 1001, "returned 1001 elements for process<file>, plot<file>; at most"),
    ],
)
def test_a_played_source_that_returns_no_list_that_can_be_used_fails(returned, reason):
    played = play(shop(), values={"find": returned})
    assert played.status == "stalled"
    assert reason in played.stalled["1/find"][0]


def test_an_argument_that_a_task_did_not_return_is_named_as_one():
    flow, listed, total = made(listing, summary)
    total(listed().value("sizes"))
    played = play(flow, values={"listing": {"size": [1]}})
    said = "it takes the argument results from listing.sizes, but 1/listing has only size"
    assert said in played.stalled["1/summary"][0]
    assert play(flow, values={"listing": {"sizes": [1]}})["1/summary"].arguments == {
        "results": [1]
    }


def test_a_value_at_another_point_is_never_too_much_for_a_function_in_silence():
    """Where a function could not find it, the task is not started and says so."""
    flow, listed, work, total = made(find, process, unnamed, initial=1, final=2)
    with flow.cycle("P1"):
        results = work.map(listed())
        total(results[-1])
    values = {"find": ["x"] * 900, "process": "y" * 150, "unnamed": 1}
    played = play(flow, values=values)
    assert played.status == "stalled"
    assert "too much for an environment variable" in played.stalled["2/unnamed"][0]
    few = play(flow, values={**values, "find": ["x"] * 2})
    assert few["2/unnamed"].arguments == {"results": ["y" * 150] * 2}
    assert few["1/unnamed"].arguments == {}


def test_what_all_elements_return_may_be_too_much_for_a_variable():
    count = 900
    played = play(shop(), values={"find": ["x"] * count, "process": "y" * 150, "plot": 1})
    assert played.status == "completed"
    assert played["1/unnamed"].variables == {}
    assert played["1/unnamed"].arguments == {"results": ["y" * 150] * count}
    assert len(json.dumps(played["1/unnamed"].inputs)) > 100 * 1024
