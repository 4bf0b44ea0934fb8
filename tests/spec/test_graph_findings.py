"""SEMANTICS §2, errors: everything that can be known to be wrong before a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.flows import codes, findings_of, flow, graph_of, load_with_findings
from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.definition import CYLC8, FamilyDef
from tidewheel.core.graph.findings import Findings, Severity


@pytest.mark.req("R001-9")
def test_a_task_that_is_only_named_with_an_offset_is_at_no_point() -> None:
    (finding,) = findings_of(flow("P1 = start[^] => foo"))
    assert finding.code == "task-at-no-point"
    assert "R1 = start" in finding.hint


def test_a_task_at_no_point_is_shown_where_it_is_first_named_also_beside_families() -> None:
    runtime = "[[FAM]]\n[[m1, m2]]\n    inherit = FAM\n[[a, b, start]]"
    text = flow("P1 = FAM:succeed-all => a\nP1 = start[^] => b", runtime)
    (finding,) = findings_of(text)
    assert finding.code == "task-at-no-point"
    assert "start[^]" in text.splitlines()[finding.position.line - 1]


@pytest.mark.req("R001-9")
def test_an_absolute_parent_off_its_sequence_is_named_with_where_it_runs() -> None:
    (finding,) = findings_of(flow("R1 = start\nP1 = start[2] => foo"))
    assert finding.code == "parent-never-there"
    assert finding.message == "tasks wait for start at 2, where it never runs"
    assert finding.hint.startswith("start runs at 1;")


def test_a_parent_that_is_never_at_the_points_asked_for_is_an_error() -> None:
    (finding,) = findings_of(flow("P2 = a\nP2 = a[-P1] => b", "[[a, b]]", final="9"))
    assert finding.code == "parent-never-there"
    never = "tasks wait for a only at points where it never runs, first at 2"
    assert finding.message == never
    assert finding.hint.startswith("a runs at 1, 3, 5, …;")


def test_a_parent_that_is_missing_at_some_points_is_a_warning() -> None:
    text = flow("P2 = a\nP1 = a[-P1] => b", final="9")
    assert codes(text) == []
    assert "parent-sometimes-missing" in codes(text, severity=Severity.WARNING)


def test_a_parent_off_its_sequence_is_no_error_for_cylc() -> None:
    text = flow("P2 = a\nP2 = a[-P1] => b", "[[a, b]]")
    assert codes(text) == ["parent-never-there"]
    assert findings_of(text, policy=CYLC8) == []


def test_tasks_that_wait_for_each_other_are_named_as_a_path() -> None:
    (finding,) = findings_of(flow("R1 = a => b => c => a"))
    assert finding.code == "circle"
    assert finding.message == "tasks wait for each other: 1/a => 1/b => 1/c => 1/a"


def test_of_a_long_circle_both_ends_are_named() -> None:
    names = [f"t{number:02}" for number in range(20)]
    (finding,) = findings_of(flow(f"R1 = {' => '.join([*names, names[0]])}"))
    path = finding.message.removeprefix("tasks wait for each other: ").split(" => ")
    start = int(path[0].removeprefix("1/t"))
    whole = [f"1/t{(start + step) % 20:02}" for step in range(21)]
    assert path == [*whole[:6], "(9 more)", *whole[-6:]]


def circles_of_a_family(size: int) -> list[str]:
    """A family waits for a task at 30 points, and only at the last one the task for it."""
    sections = [f"R1/{point} = a => F" for point in range(1, 31)]
    members = ", ".join(f"m{number}" for number in range(size))
    runtime = f"[[F]]\n[[{members}]]\n    inherit = F\n[[a]]"
    graph = "\n".join([*sections, "R1/30 = F:succeed-all => a"])
    return [one.message for one in findings_of(flow(graph, runtime, final="30"))]


def test_the_search_for_circles_ends_after_fifty_thousand_tasks() -> None:
    (found,) = circles_of_a_family(2)
    assert found.startswith("tasks wait for each other: 30/")
    assert circles_of_a_family(1_800) == []


def test_what_is_beside_a_circle_is_not_on_it() -> None:
    (finding,) = findings_of(flow("R1 = a => b & c & d\nR1 = b => a"))
    assert finding.message == "tasks wait for each other: 1/a => 1/b => 1/a"


def test_a_task_that_waits_for_itself_is_a_circle() -> None:
    assert codes(flow("P1 = a => a")) == ["circle"]


def test_a_circle_across_points_whose_offsets_add_up_to_zero_is_found() -> None:
    text = flow("P1 = a[-P1] => b\nP1 = b[+P1] => a")
    assert codes(text) == ["circle"]


def test_a_task_that_waits_for_its_own_future_is_named() -> None:
    (finding,) = findings_of(flow("P1 = a[+P1] => a", final="9"))
    assert finding.code == "future-circle"


def test_a_circle_among_tasks_that_also_wait_for_their_future_is_told_once() -> None:
    found = findings_of(flow("P1 = a => b => a\nP1 = a[+P1] => b"))
    assert [one.code for one in found] == ["circle"]


def test_a_circle_through_families_is_found() -> None:
    runtime = "[[FAM]]\n[[m1, m2]]\n    inherit = FAM"
    assert codes(flow("R1 = FAM:succeed-all => a => m2", runtime)) == ["circle"]


def test_the_way_to_the_next_point_is_no_circle() -> None:
    assert codes(flow("P1 = a[-P1] => a => b\nP1 = b[-P1] => a")) == []


def test_arrows_that_never_meet_are_no_circle() -> None:
    assert codes(flow("R/1/P2 = a => b\nR/2/P2 = b => a")) == []


def test_arrows_that_never_meet_are_no_circle_by_however_many_ways_they_lead() -> None:
    assert codes(flow("R/1/P2 = a => b & c => d\nR/2/P2 = d => a")) == []


def test_a_suicide_arrow_closes_no_circle() -> None:
    assert codes(flow('R1 = """\na => b\nb => !a\n"""')) == []


def test_an_arrow_that_removes_what_is_nowhere_is_a_warning() -> None:
    (finding,) = findings_of(flow("R1 = a => !b"), severity=Severity.WARNING)[-1:]
    assert finding.code == "removed-but-not-there"
    assert finding.message == "an arrow removes b (!b), but no recurrence runs it"


def test_a_completion_that_cannot_be_read_is_told_where_it_stands() -> None:
    runtime = "[[a]]\n    completion = succeeded and"
    (finding,) = findings_of(flow("R1 = a => b", runtime))
    assert finding.code == "completion"
    assert finding.message == "completion of a: it ends where the name of an output is expected"
    assert finding.hint.endswith("for example: succeeded or failed")


def test_an_undeclared_output_is_named_with_the_nearest() -> None:
    runtime = "[[a]]\n    [[[outputs]]]\n        ready = it is ready"
    (finding,) = findings_of(flow("R1 = a:redy => b", runtime))
    assert finding.code == "unknown-output"
    assert finding.message == "a has no output 'redy'"
    assert "did you mean 'ready'" in finding.hint


def test_undeclared_outputs_are_named_up_to_a_thousand() -> None:
    asked = " & ".join(f"a:x{number}" for number in range(1_005))
    found = findings_of(flow(f"R1 = {asked} => b"))
    assert [one.code for one in found] == ["unknown-output"] * 1_000


def test_an_undefined_xtrigger_is_named_with_the_nearest() -> None:
    text = flow("P1 = @clok => a", scheduling="[[xtriggers]]\n    clock = echo(succeed=True)")
    (finding,) = findings_of(text)
    assert finding.code == "unknown-xtrigger"
    assert finding.hint == "did you mean @clock?"


def test_an_xtrigger_and_a_task_have_not_the_same_name() -> None:
    text = flow("P1 = clock => a", scheduling="[[xtriggers]]\n    clock = echo(succeed=True)")
    (finding,) = findings_of(text)
    assert finding.code == "xtrigger-is-a-task"
    assert finding.message == "clock is both an xtrigger and a task of the graph"
    assert finding.hint == "write @clock in the graph, or rename one of them"


def test_a_graph_that_is_too_large_is_refused_before_anything_else_is_looked_at() -> None:
    runtime = "[[F]]\n[[m]]\n    inherit = F"
    loaded, _ = load_with_findings(flow("R1 = a => b\nR1 = F:succeed-all => b", runtime))
    workflow, graph = loaded.workflow, loaded.graph
    assert workflow is not None and graph is not None
    arrow = replace(graph.arrows[0], targets=("b",) * 1_000_001)
    family = FamilyDef("F", ("m",) * 1_000_001)
    for large, said in (
        (replace(graph, nodes={str(n): graph.nodes["a"] for n in range(100_001)}), TASKS),
        (replace(graph, arrows=(arrow,), groups=()), EDGES),
        (replace(graph, arrows=(), families={"F": family}), EDGES),
    ):
        findings = Findings()
        check_workflow(workflow, large, findings)
        assert [one.message for one in findings] == [said]


TASKS = "the graph has 100001 tasks; at most 100000 are accepted"
EDGES = "the graph has 1000001 edges; at most 1000000 are accepted"


def test_a_clock_needs_dates() -> None:
    assert codes(flow("P1 = @wall_clock => a")) == ["clock-without-dates"]


def implicit(runtime: str, graph: str = "fetch => modle => publish", **given: str):
    """What is said of tasks without a section, as (severity, message)."""
    text = flow(f"R1 = {graph}", runtime, **{"scheduler": "", **given})
    return [
        (one.severity.word, one.message)
        for severity in Severity
        for one in findings_of(text, severity=severity)
        if one.code == "implicit-tasks"
    ]


ALL_BUT_ONE = "[[fetch, model, publish]]\n    script = true"
WITH_ROOT = "    script = true\n[[fetch, model, publish]]"


def test_a_task_that_would_succeed_without_doing_anything_is_an_error() -> None:
    (found,) = implicit(ALL_BUT_ONE, "fetch => mail => publish => log")
    assert found == (
        "error",
        "not defined under [runtime]: mail, log; they would succeed without doing anything",
    )


def test_a_misspelt_task_is_placed_where_it_is_named_also_with_an_offset_alone() -> None:
    text = flow("P1 = modle[-P1] => publish", ALL_BUT_ONE, scheduler="")
    (finding,) = [one for one in findings_of(text) if one.code == "implicit-tasks"]
    assert "P1 = modle" in text.splitlines()[finding.position.line - 1]


@pytest.mark.parametrize("runtime", [ALL_BUT_ONE, WITH_ROOT])
def test_a_task_whose_name_is_a_letter_off_a_defined_one_is_an_error(runtime) -> None:
    (found,) = implicit(runtime)
    assert found[0] == "error"
    assert "modle (did you mean model?)" in found[1]
    (family,) = implicit(f"{runtime}\n[[ENSEMBLE]]\n[[m]]\n    inherit = ENSEMBLE", "ENSEMBEL")
    assert "ENSEMBEL (did you mean ENSEMBLE?)" in family[1]


@pytest.mark.parametrize("item", ["pre-script", "post-script"])
def test_what_root_runs_around_each_task_is_not_the_work_of_an_implicit_one(item) -> None:
    """Nearly every root has such a script; the task would be green and nothing done."""
    runtime = f"[[root]]\n    {item} = module load netcdf\n{ALL_BUT_ONE}"
    (found,) = implicit(runtime, "fetch => mail => publish")
    assert found[0] == "error"
    assert found[1].endswith(
        ": mail; it would run no script, only what root runs before or after each"
    )


@pytest.mark.req("R001-1")
@pytest.mark.parametrize("name", ["mail", "model_2", "mode_x", "pub"])
def test_a_task_to_which_root_gives_something_to_do_is_one_warning(name) -> None:
    (found,) = implicit(WITH_ROOT, f"fetch => {name} => publish")
    assert found[0] == "warning"
    assert found[1].endswith(f": {name}; it would run only the script of root")


@pytest.mark.req("R001-1")
def test_a_sketch_of_a_graph_that_defines_no_task_is_one_warning() -> None:
    text = flow("R1 = fetch => model => modle")
    assert codes(text) == []
    assert codes(text, severity=Severity.WARNING) == ["implicit-tasks"]


def test_what_is_wrong_and_what_is_only_remarkable_are_told_apart() -> None:
    found = implicit(WITH_ROOT, "fetch => modle => mail => publish")
    assert [(severity, "modle" in text, "mail" in text) for severity, text in found] == [
        ("error", True, False),
        ("warning", False, True),
    ]


def test_implicit_tasks_that_are_allowed_are_warned_of_where_they_would_be_errors() -> None:
    allowed = {"scheduler": "allow implicit tasks = True"}
    assert [one[0] for one in implicit(ALL_BUT_ONE, **allowed)] == ["warning"]
    assert implicit(WITH_ROOT, "fetch => mail => publish", **allowed) == []


def test_tasks_without_a_section_are_an_error_for_cylc_or_when_forbidden() -> None:
    text = flow("R1 = a")
    assert [one.code for one in findings_of(text, policy=CYLC8)] == ["implicit-tasks"]
    forbidden = "[scheduler]\n    allow implicit tasks = False\n" + text
    assert codes(forbidden) == ["implicit-tasks"]
    allowed = "[scheduler]\n    allow implicit tasks = True\n" + text
    assert findings_of(allowed, policy=CYLC8) == []
    forbidden = {"scheduler": "allow implicit tasks = False"}
    assert [one[0] for one in implicit(WITH_ROOT, "a => fetch", **forbidden)] == ["error"]


def test_a_misspelt_task_is_named_beside_a_line_that_is_not_understood() -> None:
    text = flow(
        'R1 = """\nfetch => modle => publish\nfetch => & x\n"""', ALL_BUT_ONE, scheduler=""
    )
    assert len(codes(text)) == 2
    assert "implicit-tasks" in codes(text)


def test_naming_a_task_that_runs_once_under_a_repeating_recurrence_is_a_warning() -> None:
    """`R1 = a` and `P1 = a:fail => m` place `a` at every point."""
    text = flow("R1 = a\nP1 = a:fail => m")
    assert "placed-twice" in codes(text, severity=Severity.WARNING)
    fine = flow("R1 = a => b\nP1 = b[-P1] => b => c")
    assert "placed-twice" not in codes(fine, severity=Severity.WARNING)


def test_a_handled_failure_that_stops_later_points_is_a_warning() -> None:
    text = flow('P1 = """\nobs & model[-P1] => model\nmodel:fail => mail\n"""')
    (finding,) = [
        one
        for one in findings_of(text, severity=Severity.WARNING)
        if one.code == "failure-stops-later-points"
    ]
    assert finding.message == (
        "if model fails, mail runs, but model at other points still needs model to succeed and "
        "will be blocked"
    )


def test_finish_across_points_is_no_trap() -> None:
    text = flow('P1 = """\nmodel[-P1]:finish => model\nmodel:fail => mail\n"""')
    assert "failure-stops-later-points" not in codes(text, severity=Severity.WARNING)


def test_a_recurrence_without_a_point_is_a_warning() -> None:
    text = flow("P1 = a\nR1/9 = b")
    assert "empty-recurrence" in codes(text, severity=Severity.WARNING)


def test_a_defined_task_outside_the_graph_is_a_warning() -> None:
    assert "unused-tasks" in codes(flow("R1 = a", "[[a]]\n[[b]]"), severity=Severity.WARNING)


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        ("R1 = a => b | c", "or-on-the-right"),
        ("R1 = !a => b", "suicide-on-the-left"),
        ("P1 = a => b[-P1]", "offset-on-the-right"),
        ("P1 = a[-Q1] => b", "offset"),
        ("P1 = a => @x", "xtrigger-on-the-right"),
        ("P1 = @wall_clock | a => b", "xtrigger-in-or"),
        ("R1 = FAM => a", "family-output"),
        ("R1 = FAM:succeeded => a", "family-output"),
        ("R1 = a:succeed-all => b", "no-family"),
        ("R1 = a:finish? => b", "finish-is-optional"),
        ('R1 = """\na => b\na => !b\n"""', "contrary-arrows"),
        ("Q1 = a", "recurrence"),
        ("R1 = a => => b", "graph-syntax"),
    ],
)
def test_each_mistake_in_a_graph_text_has_its_own_finding(graph: str, code: str) -> None:
    runtime = "[[FAM]]\n[[m1]]\n    inherit = FAM"
    assert code in codes(flow(graph, runtime))


@pytest.mark.parametrize(
    ("asked", "instead"),
    [
        ("failed-any", "write FAM:fail-any"),
        ("failed", "write FAM:fail-all or FAM:fail-any"),
    ],
)
def test_a_long_output_of_a_family_is_given_in_the_form_that_is_accepted(
    asked, instead
) -> None:
    (found,) = findings_of(
        flow(f"R1 = FAM:{asked} => a", "[[FAM]]\n[[m1]]\n inherit = FAM\n[[a]]")
    )
    assert found.hint == instead


@pytest.mark.parametrize(
    ("asked", "instead"),
    [
        ("made-all", "m1:made & m2:made"),
        ("made-any", "m1:made | m2:made"),
        ("made", "m1:made & m2:made"),
    ],
)
def test_a_custom_output_of_a_family_says_what_to_write_instead(asked, instead) -> None:
    runtime = "[[FAM]]\n    [[[outputs]]]\n        made = it is made\n"
    runtime += "[[m1, m2]]\n    inherit = FAM\n"
    (found,) = findings_of(flow(f"R1 = FAM:{asked} => a", runtime + "[[a]]"))
    assert found.message == f"FAM:{asked}: a family has no output 'made'"
    assert "succeed-all" in found.hint and found.hint.endswith(f"name the members: {instead}")


def test_every_mistake_is_reported_at_once_in_the_order_of_the_lines() -> None:
    text = flow('P1 = """\na b => c\nd => !e => f\ng:nope => h\n"""')
    found = findings_of(text)
    assert [one.code for one in found] == [
        "graph-syntax",
        "suicide-on-the-left",
        "unknown-output",
    ]
    assert [one.position.line for one in found] == [8, 9, 10]


MAPPED = "[task parameters]\n    f = list.files\n    g = list.others\n    m = 1..2\n"


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("list => run<f>[-P1] => x", "only named with an offset"),
        ("list => run<f>\nrun<f>[-P1] => run<f>", "waits for single elements at another point"),
        ("list => run<f-1>", "are known at run time only"),
        ("list => run<f=a>", "are known at run time only"),
        ("list => run<f,g>", "uses two lists"),
        ("list => run<f>_x", "is not at the end of the name"),
        ("list => run<f>\nx => !run<f>", "a mapped task cannot be removed"),
        ("list => run<f> => x\nrun<f>[^]:succeed-all => y", "elements at a fixed point"),
        ("x[^] & list => run<f>\nR1 = x", "at a fixed point"),
        ("other => run<f>", "the graph has no list"),
        ("list => run<f>\nrun_f3", "has the name of an element of run<f>"),
        ("list => run<f>:nonsense => x", "nonsense"),
        (
            "FAM:succeed-all => x\nlist => inside<f>",
            "has the mapped task inside<f> as a member",
        ),
    ],
)
def test_what_a_mapped_task_cannot_do_is_said(graph: str, said: str) -> None:
    lines = [one if "R1 =" in one else f"P1 = {one}" for one in graph.splitlines()]
    runtime = "[[FAM]]\n[[inside<f>]]\n    inherit = FAM\n"
    found = findings_of(MAPPED + flow("\n".join(lines), runtime))
    errors = [one for one in found if one.severity is Severity.ERROR]
    assert errors
    assert any(said in f"{one.message} {one.hint}" for one in errors), errors


def test_a_mapped_task_may_have_other_parameters_and_settings_of_its_own() -> None:
    runtime = "[[run<m, f>]]\n    script = true\n    [[[environment]]]\n        M = %(m)s\n"
    graph = graph_of(MAPPED + flow("P1 = list => run<m, f> => join<m>", runtime))
    assert set(graph.mapped) == {"run_m1<f>", "run_m2<f>"}
    assert graph.nodes["run_m2_f7"].definition.environment == (("M", "2"),)
    assert graph.nodes["run_m2_f7"].definition.lineage == ("run_m2_f7", "run_m2<f>", "root")
    assert "run_m2_f07" not in graph.nodes
    assert "run_m2_f1000" not in graph.nodes


def test_a_mapped_task_is_nothing_for_cylc() -> None:
    text = MAPPED + flow("P1 = list => run<f>", "[[list, run<f>]]")
    (finding,) = findings_of(text, policy=CYLC8)
    assert finding.code == "mapped-task"


@pytest.mark.parametrize("source", ["list.files max 0", "list.files max 10001", "list.a.b"])
def test_a_list_is_one_value_of_a_task_with_a_bound(source: str) -> None:
    text = f"[task parameters]\n    f = {source}\n" + flow("P1 = list => run<f>")
    assert any(one.code == "bad-value" for one in findings_of(text))


def test_a_template_of_a_value_that_is_not_known_yet_is_reported() -> None:
    runtime = "[[run<f>]]\n    [[[environment]]]\n        X = %(f)s\n"
    text = MAPPED + flow("P1 = list => run<f>", runtime)
    assert "bad-parameter" in codes(text, severity=Severity.WARNING)


def test_mapped_tasks_may_not_have_too_many_elements_together() -> None:
    chain = " => ".join(["list", *(f"t{number}<f>" for number in range(11))])
    text = "[task parameters]\n    f = list.files max 10000\n" + flow(f"P1 = {chain}")
    assert "too-many-tasks" in codes(text)


# ---- lists that name tasks ----

LISTS = {
    "[[queues]]\n    [[[q]]]\n        members = model, modle": Severity.WARNING,
    "[[special tasks]]\n    sequential = modle": Severity.ERROR,
    '[[special tasks]]\n    external-trigger = modle("data")': Severity.ERROR,
}


@pytest.mark.parametrize("lists", LISTS)
def test_a_list_that_names_no_task_is_found_with_what_was_meant(lists: str) -> None:
    text = flow(
        "R1 = model => b", "[[model, b]]", scheduling=lists, scheduler="UTC mode = True"
    )
    (finding,) = load_with_findings(text)[1]
    assert (finding.code, finding.severity) == ("unknown-task", LISTS[lists])
    assert finding.message.endswith("names 'modle', which is neither a task nor a family")
    assert finding.hint == "did you mean 'model'?"
    assert "modle" in text.splitlines()[finding.position.line - 1]


@pytest.mark.parametrize("lists", LISTS)
def test_what_cylc_accepts_in_a_list_is_a_warning(lists: str) -> None:
    text = flow("R1 = model => b", "[[model, b]]", scheduling=lists)
    (finding,) = load_with_findings(text)[1]
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("name", ["FAM", "model", "in_graph", "root"])
@pytest.mark.parametrize("lists", LISTS)
def test_a_list_may_name_tasks_and_families(lists: str, name: str) -> None:
    runtime = "[[FAM]]\n[[model]]\n    inherit = FAM\n[[b]]"
    said = lists.replace("modle", name)
    _, found = load_with_findings(flow("R1 = model => b => in_graph", runtime, scheduling=said))
    assert "unknown-task" not in [one.code for one in found]


def test_a_list_is_not_judged_where_the_graph_was_not_understood() -> None:
    text = flow("R1 = model => => b", scheduling=next(iter(LISTS)))
    assert "unknown-task" not in codes(text, severity=Severity.WARNING)


def test_an_xtrigger_that_nothing_waits_for_is_a_warning() -> None:
    defined = "[[xtriggers]]\n    one = xrandom(100)\n    two = xrandom(100)"
    text = flow("R1 = @one => a", "[[a]]", scheduling=defined)
    (finding,) = load_with_findings(text)[1]
    assert (finding.code, finding.severity) == ("unused-xtrigger", Severity.WARNING)
    assert finding.message.startswith("the xtrigger two is defined, but nothing")
    assert "two = xrandom" in text.splitlines()[finding.position.line - 1]


IDLE = {
    "[[[skip]]]\n    outputs = sent, snet": (
        "unknown-output",
        "[runtime][a][skip]outputs names 'snet', which this task does not have",
        "did you mean 'sent'?",
    ),
    "[[[workflow state polling]]]\n    max-polls = 3": (
        "idle-polling",
        "a has [workflow state polling], and polls for no other workflow",
        "write a<WORKFLOW::TASK> in the graph, or remove the section",
    ),
}


@pytest.mark.parametrize("section", IDLE)
def test_what_a_task_says_without_effect_is_a_warning(section: str) -> None:
    runtime = f"[[a]]\n[[[outputs]]]\nsent = it was sent\n{section}"
    (finding,) = load_with_findings(flow("R1 = a", runtime))[1]
    assert (finding.code, finding.message, finding.hint) == IDLE[section]
    assert finding.severity is Severity.WARNING


def test_a_queue_without_members_is_a_warning() -> None:
    queues = "[[queues]]\n    [[[default]]]\n        limit = 3\n    [[[q]]]\n        limit = 1"
    (finding,) = load_with_findings(flow("R1 = a", "[[a]]", scheduling=queues))[1]
    assert (finding.code, finding.severity) == ("empty-queue", Severity.WARNING)


def test_a_script_of_which_only_comments_are_left_is_a_warning() -> None:
    script = 'script = """\n# fetch the data\n\n  # {% if live %}\n"""'
    (finding,) = load_with_findings(flow("R1 = a", f"[[a]]\n{script}"))[1]
    assert (finding.code, finding.severity) == ("idle-script", Severity.WARNING)
    assert finding.message == "[runtime][a]script has only comments"
    for more in ("pre-script = true", ""):
        said = f"[[a]]\n{script if more else 'script ='}\n{more}"
        assert not codes(flow("R1 = a", said), severity=Severity.WARNING)


DATES = "[scheduling]\n    initial cycle point = 20300101T00Z\n{}    [[graph]]\n        {}\n"


@pytest.mark.parametrize(
    ("more", "graph", "is_told"),
    [
        ("", "T02 = a", True),
        ("", "R1 = a", False),
        ("", "R5/^/P1D = a", False),
        ("    final cycle point = +P5D\n", "T02 = a", False),
        ("    stop after cycle point = 20300105T00Z\n", "T02 = a", False),
        ("", "T02 = @wall_clock => a", False),
        ("    cycling mode = 360day\n", "T02 = a", False),
        ("    [[special tasks]]\n        clock-trigger = a(PT0S)\n", "T02 = a", False),
    ],
)
def test_dates_without_an_end_and_without_a_clock_are_a_warning(more, graph, is_told) -> None:
    """A nightly job would run all nights to come at once, all of them green."""
    text = DATES.format(more, graph) + "[runtime]\n    [[a]]\n        script = true\n"
    expected = ["nothing-waits-for-the-clock"] if is_told else []
    assert codes(text, severity=Severity.WARNING) == expected
