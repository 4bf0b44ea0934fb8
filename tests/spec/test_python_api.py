"""DESIGN §10: the same model by decorators and operators, tasks as functions or scripts."""

from __future__ import annotations

import pickle
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tidewheel.core.graph.definition import CYLC8
from tidewheel.core.graph.findings import Findings, Position, Severity
from tidewheel.core.graph.graph import Graph, meaning
from tidewheel.formats.flow_cylc.workflow import (
    LoadedWorkflow,
    LoadOptions,
    PointTexts,
    load_workflow,
)
from tidewheel.formats.python_api import (
    BadStatement,
    InvalidDefinition,
    ReadOptions,
    Workflow,
    all_of,
    any_of,
    load_python,
)

ROOT = Path(__file__).parents[2]
NOW = 1_900_000_020.0  # a whole minute, as points are
EXAMPLE = ROOT / "examples" / "forecast.py"


# -- The two front ends side by side


@pytest.fixture
def in_flow_cylc(tmp_path):
    """The same workflow as flow.cylc text, read and compiled."""

    def read(text: str) -> LoadedWorkflow:
        (tmp_path / "flow.cylc").write_text(text, encoding="utf-8")
        findings = Findings()
        loaded = load_workflow(tmp_path, LoadOptions(now=NOW, name="w"), findings)
        assert not findings.has_errors, [str(one) for one in findings.sorted()]
        return loaded

    return read


def integer_text(graph: str, runtime: str = "", *, final: int = 5) -> str:
    """The frame that most examples share, around indented lines `recurrence = graph`."""
    return (
        "[scheduler]\nallow implicit tasks = True\n"
        "[scheduling]\ncycling mode = integer\ninitial cycle point = 1\n"
        f"final cycle point = {final}\n[[graph]]\n{graph}\n[runtime]\n{runtime}\n"
    )


def integer_flow(*names: str):
    """A workflow with points 1 to 5, and its tasks."""
    flow = Workflow("w", initial=1, final=5)
    return (flow, *(flow.task(name) for name in names))


def compiled(flow: Workflow) -> Graph:
    return flow.compile(ReadOptions(now=NOW)).graph


def same(flow: Workflow, loaded: LoadedWorkflow) -> bool:
    """Equal graphs; and where both define a task, equal tasks."""
    graph = compiled(flow)
    assert loaded.graph is not None
    assert meaning(graph) == meaning(loaded.graph)
    for name, node in loaded.graph.nodes.items():
        assert graph.nodes[name].definition == node.definition
    return True


def test_the_complete_example_of_seed_001_is_the_same_graph_in_python(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    flow.defaults(script="sleep $(( 5 + RANDOM % 5 ))")
    alert, a, b, c = (flow.task(name) for name in ("alert", "A", "B", "C"))
    x = flow.task(
        "x",
        script="""
            if (( CYLC_TASK_CYCLE_POINT == 1 && CYLC_TASK_SUBMIT_NUMBER == 1 )); then
               false
            fi""",
    )
    with flow.cycle("P1"):
        x.failed >> alert
        x >> b
        (a & b) >> c
    assert same(
        flow,
        in_flow_cylc(
            '''
[scheduling]
   cycling mode = integer
   initial cycle point = 1
   final cycle point = 5
   [[graph]]
       P1 = """x:fail => alert
               x => B
               A & B => C"""
[runtime]
   [[root]]
       script = sleep $(( 5 + RANDOM % 5 ))
   [[x]]
       script = """
   if (( CYLC_TASK_CYCLE_POINT == 1 && CYLC_TASK_SUBMIT_NUMBER == 1 )); then
      false
   fi"""
'''
        ),
    )


def test_a_chain_is_an_arrow_between_each_two_neighbours(in_flow_cylc):
    flow, a, b, c, d = integer_flow("a", "b", "c", "d")
    with flow.cycle("P1"):
        a >> b >> (c & d)
    assert same(flow, in_flow_cylc(integer_text("P1 = a => b => c & d")))
    assert len(compiled(flow).arrows) == 2


def test_and_or_and_parentheses_mean_what_they_mean_in_graph_text(in_flow_cylc):
    flow, a, b, c, d, e = integer_flow("a", "b", "c", "d", "e")
    with flow.cycle("P1"):
        ((a | b) & c) >> d
        (a & b | c & d) >> e
    text = 'P1 = """(a | b) & c => d\n a & b | c & d => e"""'
    assert same(flow, in_flow_cylc(integer_text(text)))


def test_every_output_can_be_waited_for(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    m = flow.task("m", outputs={"ready": "the first day is there"})
    m_started, m_submitted, m_ready = (flow.task(name) for name in ("t1", "t2", "t3"))
    m_not_submitted, m_expired, m_over = (flow.task(name) for name in ("t4", "t5", "t6"))
    m_failed, m_succeeded = (flow.task(name) for name in ("t7", "t8"))
    with flow.cycle("P1"):
        m.started >> m_started
        m.submitted >> m_submitted
        m.output("ready") >> m_ready
        m.submit_failed >> m_not_submitted
        m.expired >> m_expired
        m.finished >> m_over
        m.failed >> m_failed
        m.succeeded >> m_succeeded
    graph = """m:start => t1
        m:submit => t2
        m:ready => t3
        m:submit-fail => t4
        m:expire => t5
        m:finish => t6
        m:fail => t7
        m:succeed => t8"""
    runtime = "[[m]]\n[[[outputs]]]\nready = the first day is there\n"
    assert same(flow, in_flow_cylc(integer_text(f'P1 = """{graph}"""', runtime)))


def test_optional_outputs_decide_when_a_task_is_complete(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    m = flow.task("m", outputs={"x": "made x", "y": "made y"})
    mail, after_x, after_y, done = (flow.task(name) for name in ("mail", "ax", "ay", "done"))
    with flow.cycle("P1"):
        m.failed.optional >> mail
        m.optional >> done
        m.output("x").optional >> after_x
        m.output("y") >> after_y
    graph = "m:fail? => mail\nm? => done\nm:x? => ax\nm:y => ay"
    runtime = "[[m]]\n[[[outputs]]]\nx = made x\ny = made y\n"
    assert same(flow, in_flow_cylc(integer_text(f'P1 = """{graph}"""', runtime)))
    assert str(compiled(flow).nodes["m"].completion) == "(succeeded and y) or failed"


def test_offsets_are_numbers_or_what_stands_between_brackets_in_graph_text(in_flow_cylc):
    flow, start, two, a, b, c = integer_flow("start", "two", "a", "b", "c")
    with flow.cycle("R1"):
        flow.place(start)
    with flow.cycle("R1/2"):
        flow.place(two)
    with flow.cycle("P1"):
        start["^"] >> a
        two["2"] >> a
        (a[-1] & a["-P2"].finished & a[0]) >> b
        a[" +P1 "].started >> c
    graph = '''R1 = start
        R1/2 = two
        P1 = """start[^] => a
            two[2] => a
            a[-P1] & a[-P2]:finish & a => b
            a[+P1]:start => c"""'''
    assert same(flow, in_flow_cylc(integer_text(graph)))


def test_a_family_on_the_left_is_all_or_any_of_it_and_on_the_right_each_of_it(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    ens = flow.family("ENS", environment={"GRID": "coarse"})
    for number in (1, 2, 3):
        flow.task(f"m{number}", family=ens)
    start, report, alarm, next_day = (
        flow.task(name) for name in ("start", "report", "alarm", "next")
    )
    with flow.cycle("P1"):
        start >> ens
        ens.all.succeeded.optional >> report
        ens.any.failed.optional >> alarm
        ens[-1].all.finished >> next_day
        ens.any >> report
    graph = """start => ENS
        ENS:succeed-all? => report
        ENS:fail-any? => alarm
        ENS[-P1]:finish-all => next
        ENS:succeed-any => report"""
    runtime = "[[ENS]]\n[[[environment]]]\nGRID = coarse\n[[m1, m2, m3]]\ninherit = ENS\n"
    assert same(flow, in_flow_cylc(integer_text(f'P1 = """{graph}"""', runtime)))
    assert len(compiled(flow).groups) == 4


def test_families_may_have_families_and_several_parents(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    model = flow.family("MODEL", environment={"GRID": "coarse", "LEVELS": 40})
    fine = flow.family("FINE", family=model, environment={"GRID": "fine"}, retries=["PT1M"])
    post = flow.family("POST", platform="small", retries=["PT5M", "2*PT10M"])
    a = flow.task("a", family=fine)
    b = flow.task("b", family=[fine, post], environment={"LEVELS": 70})
    with flow.cycle("P1"):
        a >> b
        flow.place(model)
    runtime = """[[MODEL]]
            [[[environment]]]
                GRID = coarse
                LEVELS = 40
        [[FINE]]
            inherit = MODEL
            execution retry delays = PT1M
            [[[environment]]]
                GRID = fine
        [[POST]]
            platform = small
            execution retry delays = PT5M, 2*PT10M
        [[a]]
            inherit = FINE
        [[b]]
            inherit = FINE, POST
            [[[environment]]]
                LEVELS = 70"""
    loaded = in_flow_cylc(integer_text('P1 = """a => b\nMODEL"""', runtime))
    assert same(flow, loaded)
    assert loaded.workflow is not None
    assert flow.definition().families == loaded.workflow.families


def test_xtriggers_are_waited_for(in_flow_cylc):
    flow = Workflow("w", cycling="gregorian", initial="20300101T00Z", final="20300103T00Z")
    clock = flow.xtrigger("clock", "wall_clock", offset="PT1H")
    poll = flow.xtrigger("poll", "workflow_state", "up//%(point)s/obs", interval="PT30S")
    obs, model = flow.task("obs"), flow.task("model")
    with flow.cycle("T00, T12"):
        clock >> obs
        (poll & obs & model["-PT12H"]) >> model
    text = '''
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = 20300103T00Z
    [[xtriggers]]
        clock = wall_clock(offset=PT1H)
        poll = workflow_state(up//%(point)s/obs):PT30S
    [[graph]]
        T00, T12 = """@clock => obs
            @poll & obs & model[-PT12H] => model"""
[runtime]
    [[obs, model]]
'''
    loaded = in_flow_cylc(text)
    assert same(flow, loaded)
    ours, theirs = compiled(flow).xtriggers, loaded.graph.xtriggers
    assert {
        one: (ours[one].function, ours[one].arguments, ours[one].keywords) for one in ours
    } == {
        one: (theirs[one].function, theirs[one].arguments, theirs[one].keywords)
        for one in theirs
    }
    assert ours["poll"].interval_seconds == 30


def test_a_suicide_arrow_removes_a_task_or_a_family(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    fam = flow.family("FAM")
    a, b, recover = (flow.task(name) for name in ("a", "b", "recover"))
    flow.task("m", family=fam)
    with flow.cycle("P1"):
        a.failed >> recover
        a >> (~recover & b)
        recover >> ~fam
        flow.place(fam)
    graph = """a:fail => recover
        a => !recover & b
        recover => !FAM
        FAM"""
    runtime = "[[FAM]]\n[[m]]\ninherit = FAM\n"
    assert same(flow, in_flow_cylc(integer_text(f'P1 = """{graph}"""', runtime)))


@pytest.mark.parametrize(
    ("cycling", "recurrence", "offset"),
    [
        ("gregorian", "P1M", "-P1M"),
        ("gregorian", "R3/^+PT6H/P1D!(20300102T06)", "-P1D-PT6H"),
        ("gregorian", "T00,T12", "T06"),
        ("360day", "R//P1Y", "-P1Y"),
        ("365day", "W-1T00", "^+P1W"),
        ("366day", "R1/$-P1D", "20300101"),
    ],
)
def test_every_recurrence_and_calendar_of_flow_cylc_is_accepted(
    in_flow_cylc, cycling, recurrence, offset
):
    flow = Workflow("w", cycling=cycling, initial="20300101T00Z", final="20320101T00Z")
    a, b = flow.task("a"), flow.task("b")
    with flow.cycle("PT6H"):
        flow.place(a)
    with flow.cycle(recurrence):
        a[offset] >> b
    text = f"""
[scheduling]
    cycling mode = {cycling}
    initial cycle point = 20300101T00Z
    final cycle point = 20320101T00Z
    [[graph]]
        PT6H = a
        {recurrence} = a[{offset}] => b
[runtime]
    [[a, b]]
"""
    assert same(flow, in_flow_cylc(text))


def test_settings_of_tasks_have_the_words_of_flow_cylc(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    a = flow.task(
        "a",
        pre_script="module load model",
        run=["model", "--out", "a file"],
        retries=[timedelta(minutes=1), "2*PT10M"],
        submission_retries=["PT30S"],
        time_limit="PT2H",
        platform="hpc",
        directives={"--ntasks": 4},
        work_subdirectory="shared",
        run_mode="skip",
        completion="succeeded or failed",
        meta={"title": "The model"},
        events={"mail_events": ["failed"], "execution timeout": "PT3H"},
        mail={"to": "me@example.org"},
        skip={"outputs": ["succeeded"]},
        simulation={"default run length": "PT1S"},
    )
    with flow.cycle("P1"):
        flow.place(a)
    runtime = """[[a]]
        pre-script = module load model
        script = model --out 'a file'
        execution retry delays = PT1M, 2*PT10M
        submission retry delays = PT30S
        execution time limit = PT2H
        platform = hpc
        work sub-directory = shared
        run mode = skip
        completion = succeeded or failed
        [[[directives]]]
            --ntasks = 4
        [[[meta]]]
            title = The model
        [[[events]]]
            mail events = failed
            execution timeout = PT3H
        [[[mail]]]
            to = me@example.org
        [[[skip]]]
            outputs = succeeded
        [[[simulation]]]
            default run length = PT1S"""
    assert same(flow, in_flow_cylc(integer_text("P1 = a", runtime)))


def test_limits_special_tasks_and_points_are_those_of_flow_cylc(in_flow_cylc):
    flow = Workflow(
        "w",
        cycling="gregorian",
        initial="20300101T00+01",
        final="+P5D",
        stop="+P3D",
        hold_after="20300103T00+01",
        runahead="PT36H",
        time_zone="+01",
    )
    big = flow.family("BIG", sequential=True)
    a = flow.task("a", family=big, expire_after="PT6H")
    b = flow.task("b", wait_for_clock="PT1H", wait_for_message="data are here")
    flow.limit("default", 50)
    flow.limit("heavy", 2, [big])
    with flow.cycle("P1D"):
        a >> b
    loaded = in_flow_cylc(
        """
[scheduler]
    cycle point time zone = +01
[scheduling]
    initial cycle point = 20300101T00+01
    final cycle point = +P5D
    stop after cycle point = +P3D
    hold after cycle point = 20300103T00+01
    runahead limit = PT36H
    [[queues]]
        [[[default]]]
            limit = 50
        [[[heavy]]]
            limit = 2
            members = BIG
    [[special tasks]]
        sequential = BIG
        clock-expire = a(PT6H)
        clock-trigger = b(PT1H)
        external-trigger = b("data are here")
    [[graph]]
        P1D = a => b
[runtime]
    [[BIG]]
    [[a]]
        inherit = BIG
    [[b]]
"""
    )
    ours, theirs = flow.definition(), loaded.workflow
    assert theirs is not None
    assert ours.cycling == theirs.cycling
    assert ours.limit_groups == theirs.limit_groups
    assert ours.special == theirs.special
    assert same(flow, loaded)


def test_a_workflow_that_says_nothing_of_points_runs_once(in_flow_cylc):
    flow = Workflow("w")
    a, b = flow.task("a"), flow.task("b")
    with flow.cycle("R1"):
        a >> b
    loaded = in_flow_cylc("[scheduling]\n[[graph]]\nR1 = a => b\n[runtime]\n[[a, b]]\n")
    assert loaded.workflow is not None
    assert flow.definition().cycling == loaded.workflow.cycling
    assert same(flow, loaded)


def test_loops_take_the_place_of_parameters(in_flow_cylc):
    flow = Workflow("w", initial=1, final=5)
    split, join = flow.task("split"), flow.task("join")
    parts = [flow.task(f"part_m{number}") for number in range(1, 4)]
    with flow.cycle("P1"):
        split >> all_of(*parts)
        all_of(*parts) >> join
        any_of(*(part.failed for part in parts)) >> flow.task("alarm")
        for earlier, later in pairwise(parts):
            earlier.started >> later
    text = """
[task parameters]
    m = 1..3
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 5
    [[graph]]
        P1 = '''split => part<m> => join
            part<m-1>:start => part<m>
            part_m1:fail | part_m2:fail | part_m3:fail => alarm'''
[runtime]
    [[split, join, alarm, part<m>]]
"""
    loaded = in_flow_cylc(text)
    assert meaning(compiled(flow)) == meaning(loaded.graph)


# -- The same, for whatever can be written

PARENTS, CHILDREN = ("a", "b"), ("c", "d")
OUTPUTS = {
    "": lambda node: node,
    ":succeed": lambda node: node.succeeded,
    ":fail": lambda node: node.failed,
    ":start": lambda node: node.started,
    ":submit": lambda node: node.submitted,
    ":finish": lambda node: node.finished,
    ":x": lambda node: node.output("x"),
}
leaves = st.tuples(
    st.sampled_from(PARENTS),
    st.sampled_from(["", "[-P1]", "[-P2]", "[^]", "[2]"]),
    st.sampled_from(list(OUTPUTS)),
)
# A leaf, or a sign and what it joins.
sides = st.recursive(
    leaves,
    lambda inner: st.tuples(st.sampled_from("&|"), st.lists(inner, min_size=2, max_size=3)),
    max_leaves=5,
)
targets = st.lists(st.tuples(st.booleans(), st.sampled_from(CHILDREN)), min_size=1, max_size=3)


def as_text(side, mark: str) -> str:
    if side[0] in "&|":
        return "(" + f" {side[0]} ".join(as_text(term, mark) for term in side[1]) + ")"
    name, offset, output = side
    return f"{name}{offset}{output}{mark if output != ':finish' else ''}"


def as_term(side, mark: str, tasks):
    if side[0] in "&|":
        join = and_ if side[0] == "&" else or_
        return reduce(join, (as_term(term, mark, tasks) for term in side[1]))
    name, offset, output = side
    node = OUTPUTS[output](tasks[name][offset[1:-1]] if offset else tasks[name])
    return node.optional if mark and output != ":finish" else node


@pytest.mark.slow
@given(
    st.lists(st.tuples(sides, st.sampled_from(["", "", "?"]), targets), min_size=1, max_size=4)
)
def test_any_statement_means_what_the_same_graph_text_means(statements):
    flow = Workflow("w", initial=1, final=5)
    names = (*PARENTS, *CHILDREN)
    tasks = {name: flow.task(name, outputs={"x": "made x"}) for name in names}
    lines = ["&".join(names)]
    with flow.cycle("P1"):
        flow.place(*tasks.values())
        for left, mark, right in statements:
            as_term(left, mark, tasks) >> all_of(
                *(~tasks[name] if doomed else tasks[name] for doomed, name in right)
            )
            ends = " & ".join("!" * doomed + name for doomed, name in right)
            lines.append(f"{as_text(left, mark)} => {ends}")
    runtime = f"[[{', '.join(names)}]]\n[[[outputs]]]\nx = made x\n"
    text = integer_text('P1 = """' + "\n".join(lines) + '"""', runtime)
    findings = Findings()
    with TemporaryDirectory() as folder:
        (Path(folder) / "flow.cylc").write_text(text, encoding="utf-8")
        loaded = load_workflow(Path(folder), LoadOptions(now=NOW), findings)
    ours = flow.findings(ReadOptions(now=NOW))
    # Whether or not they make sense, both are judged alike.
    assert {one.code for one in ours} == {one.code for one in findings}
    event(f"makes sense: {not findings.has_errors}")
    if not findings.has_errors:
        assert loaded.graph is not None
        assert meaning(compiled(flow)) == meaning(loaded.graph)


# -- Statements


def test_a_chain_that_grows_in_two_ways_is_two_chains(in_flow_cylc):
    flow, a, b, c, d = integer_flow("a", "b", "c", "d")
    with flow.cycle("P1"):
        begun = a >> b
        begun >> c
        begun >> d
    assert same(flow, in_flow_cylc(integer_text('P1 = """a => b => c\na => b => d"""')))


def test_a_cycle_may_be_opened_again_and_adds_up():
    flow, a, b, c = integer_flow("a", "b", "c")
    with flow.cycle("P1"):
        a >> b
    with flow.cycle("P2"):
        flow.place(c)
    with flow.cycle("P1"):
        b >> c
    sections = flow.definition().sections
    assert [(one.recurrence, len(one.arrows)) for one in sections] == [("P1", 2), ("P2", 0)]


def test_a_statement_knows_its_line():
    flow, a, b = integer_flow("a", "b")
    with flow.cycle("P1"):
        a >> b
    (arrow,) = flow.definition().sections[0].arrows
    assert arrow.position.file == __file__
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[arrow.position.line - 1] == (
        "        a >> b"
    )


def test_a_definition_can_be_taken_again_after_more_was_said():
    flow, a, b, c = integer_flow("a", "b", "c")
    with flow.cycle("P1"):
        a >> b
    before = flow.definition()
    with flow.cycle("P1"):
        b >> c
    assert len(before.sections[0].arrows) == 1
    assert len(flow.definition().sections[0].arrows) == 2


def test_defaults_add_up_and_a_definition_is_not_changed_by_later_ones():
    flow, a = integer_flow("a")
    flow.defaults(environment={"A": "1", "B": "1"}, script="true")
    flow.defaults(environment={"B": "2"})
    with flow.cycle("P1"):
        flow.place(a)
    before = flow.definition()
    flow.xtrigger("echo", "echo", succeed=True)
    flow.defaults(script="false")
    assert before.nodes["a"].environment == (("A", "1"), ("B", "2"))
    assert before.nodes["a"].scripts.main == "true"
    assert before.xtriggers == {}
    assert flow.definition().nodes["a"].scripts.main == "false"


def test_a_definition_and_its_graph_can_be_pickled():
    flow, a, b = integer_flow("a", "b")
    with flow.cycle("P1"):
        a >> b
    graph, findings = flow.compile()
    assert findings == []
    assert meaning(pickle.loads(pickle.dumps(graph))) == meaning(graph)
    assert pickle.loads(pickle.dumps(flow.definition())) == flow.definition()


def test_points_policy_and_clock_may_be_given_beside_the_definition():
    flow = Workflow("w", cycling="gregorian", initial="now")
    a, b = flow.task("a"), flow.task("b")
    with flow.cycle("P1D"):
        a >> b
    options = ReadOptions(now=NOW, points=PointTexts(final="+P2D"), policy=CYLC8)
    graph = flow.compile(options).graph
    assert graph.cycling.initial == NOW
    assert graph.cycling.final == NOW + 2 * 86400
    assert graph.policy is CYLC8


# -- Statements that cannot be meant


def refused(statement) -> BadStatement:
    flow, a, b, c, d = integer_flow("a", "b", "c", "d")
    with pytest.raises(BadStatement) as caught, flow.cycle("P1"):
        statement(a, b, c, d)
    assert caught.value.position.file == __file__
    return caught.value


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        (lambda a, b, c, _d: a & b >> c, "(a & b) >> c"),
        (lambda a, b, c, d: a & b & c >> d, "(a & b & c) >> d"),
        (lambda a, b, c, _d: a >> b & c, "a >> (b & c)"),
        (lambda a, b, c, d: a >> b & c >> d, "a >> (b & c) >> d"),
        (lambda a, b, c, d: (a | b) & c >> d, "((a | b) & c) >> d"),
        (lambda a, b, c, d: a[-1] | b.failed >> c >> d, "(a['-P1'] | b.failed) >> c >> d"),
    ],
)
def test_an_arrow_that_binds_tighter_than_meant_is_refused_with_the_parentheses(
    statement, meant
):
    error = refused(statement)
    assert error.hint == f"add parentheses: {meant}"
    assert "binds tighter" in error.message


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (lambda a, b, c, _d: (a and b) >> c, "write '&' for 'and'"),
        (lambda a, b, c, _d: (a or b) >> c, "'|' for 'or'"),
        (lambda a, b, _c, _d: a >> b if a else None, "decided in the function"),
        (lambda a, b, _c, _d: a >> (not b), "such as a.failed"),
        (lambda a, b, c, _d: a >> (b >> c), "a >> b >> c"),
        (lambda a, b, c, _d: a >> (b | c), "use '&'"),
        (lambda a, b, c, _d: a >> [b, c], "all_of(*tasks)"),
        (lambda a, b, c, _d: [a, b] >> c, "all_of(*tasks)"),
        (lambda a, b, _c, _d: all_of([a, b]), "all_of(*tasks)"),
        (lambda a, _b, _c, _d: a >> "b", "flow.task('b')"),
        (lambda a, _b, _c, _d: a >> refused, "@flow.task"),
        (lambda a, _b, _c, _d: a & None, "None is not a task"),
        (lambda a, b, _c, _d: ~a >> b, "condition >> ~a"),
        (lambda a, b, c, _d: a >> ~b >> c, "condition >> ~b"),
        (lambda a, b, c, _d: a >> (~b | c), "use '&'"),
        (lambda _a, _b, _c, _d: all_of(), "at least one"),
        (lambda a, b, _c, _d: a[2] >> b, 'a["+P2"] or a["2"]'),
        (lambda a, b, _c, _d: a[1.5] >> b, "a[-1]"),
        (lambda a, b, _c, _d: a[-1:] >> b, "a[-1]"),
        (lambda a, b, _c, _d: a.finished.optional >> b, "leave out .optional"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_write(statement, words):
    assert words in str(refused(statement))


def test_a_task_cannot_be_iterated_over():
    _, a = integer_flow("a")
    with pytest.raises(TypeError):
        list(a)
    with pytest.raises(TypeError):
        assert "a" in a


def test_a_family_on_the_left_must_say_what_of_its_members():
    flow, a = integer_flow("a")
    fam = flow.family("FAM")
    with pytest.raises(BadStatement, match=r"FAM\.all\.succeeded"), flow.cycle("P1"):
        fam >> a
    with (
        pytest.raises(BadStatement, match="use the outputs of its members: any_of"),
        flow.cycle("P1"),
    ):
        fam.any.output("x") >> a


def test_an_xtrigger_stands_on_the_left_beside_and_only():
    flow, a, b = integer_flow("a", "b")
    echo = flow.xtrigger("echo", "echo", succeed=True)
    for statement, words in (
        (lambda: a >> echo, "echo >> task"),
        (lambda: (echo | a) >> b, "use '&'"),
        (lambda: flow.place(echo), "write echo >> task"),
    ):
        with pytest.raises(BadStatement) as caught, flow.cycle("P1"):
            statement()
        assert words in str(caught.value)


def test_a_function_is_called_without_what_is_for_the_scheduler():
    flow = Workflow("w")
    flow.xtrigger("echo", "echo", succeed=True, sequential=True)
    with flow.cycle("R1"):
        flow.place(flow.task("a", script="true"))
    echo = flow.definition().xtriggers["echo"]
    assert (echo.keywords, echo.sequential) == ((("succeed", True),), True)


def test_a_statement_outside_of_a_cycle_is_refused():
    flow, a, b = integer_flow("a", "b")
    with pytest.raises(BadStatement, match="a >> b is outside of a cycle"):
        a >> b
    with pytest.raises(BadStatement, match="outside of a cycle"):
        flow.place(a)


def _wipes() -> None:
    pass


def test_a_call_outside_of_a_cycle_is_refused_if_the_workflow_goes_on_to_other_points():
    def findings_of(**points):
        flow = Workflow("w", **points)
        flow.task(_wipes)()
        return [one.message for one in flow.findings()]

    (seen,) = findings_of(initial=1, final=3)
    assert seen == (
        "the call is outside of a cycle, so its task runs once, and never at the other points "
        "up to final='3'"
    )
    assert findings_of(initial=2, final=2) == findings_of(initial=2) == findings_of() == []


def test_a_date_in_a_workflow_of_numbers_is_answered_with_how_to_have_dates():
    (date,) = Workflow("w", initial="2026-11-01").findings()
    flow, a = integer_flow("a")
    with flow.cycle("P1D"):
        flow.place(a)
    (interval,) = flow.findings()
    for seen in (date, interval):
        assert seen.hint.endswith(
            'for dates, set cycling mode = gregorian (Python: cycling="gregorian")'
        )


def test_an_index_of_what_a_task_returns_is_not_mistaken_for_a_cycle_point():
    flow, a = integer_flow("a")
    with (
        flow.cycle("P1"),
        pytest.raises(BadStatement, match="'sum' is not an offset") as refusal,
    ):
        a["sum"]
    assert refusal.value.hint == (
        'for a value that a returns write .value("sum") after its call'
    )
    total = flow.task(_takes_number)
    with flow.cycle("P1"), pytest.raises(BadStatement, match=r"a\[0\]\): \[0\] is this cycle"):
        total(a[0])


def test_a_cycle_inside_of_another_is_refused():
    flow, *_ = integer_flow()
    with (
        flow.cycle("P1"),
        pytest.raises(BadStatement, match="begins inside the cycle 'P1'"),
        flow.cycle("P2"),
    ):
        pass


def test_tasks_of_two_workflows_cannot_be_joined():
    flow, a, b = integer_flow("a", "b")
    other = Workflow("other")
    foreign, second = other.task("foreign"), other.task("second")
    for statement in (
        lambda: a >> foreign,
        lambda: (foreign & a) >> b,
        lambda: foreign >> second,
    ):
        with pytest.raises(BadStatement, match="workflow 'other'"), flow.cycle("P1"):
            statement()


def test_numbers_as_offsets_are_for_numbered_points():
    flow = Workflow("w", cycling="gregorian", initial="2030")
    a = flow.task("a")
    with pytest.raises(BadStatement, match=r'a\["-P1D"\]'):
        a[-1]


def test_a_delay_as_others_call_it_is_refused_with_how_delays_are_written():
    flow, *_ = integer_flow()
    with pytest.raises(BadStatement, match=r'retries=\["10s", "1m"\]'):
        flow.task("a", script="true", retries=3, retry_delay_seconds=10)


def test_a_template_in_an_argument_is_a_warning_since_nothing_fills_it_in(tmp_path):
    """In Airflow {{ ds }} is the date; here the job would be green, for a wrong partition."""
    file = tmp_path / "nightly.py"
    file.write_text(
        "from tidewheel import Workflow\n"
        "flow = Workflow('nightly', initial=1, final=2)\n"
        "@flow.task\n"
        "def load(day, table):\n"
        "    print(day)\n"
        "with flow.cycle('P1'):\n"
        "    load('{{ ds }}', '{orders}')\n"
    )
    loaded = load_python(file, Findings())
    assert loaded is not None
    (finding,) = loaded.findings()
    assert finding.code == "template-in-argument"
    assert finding.severity is Severity.WARNING
    assert "load(day='{{ ds }}')" in finding.message
    assert "TIDEWHEEL_TASK_CYCLE_POINT" in finding.hint


def test_a_workflow_that_is_given_a_schedule_is_refused_with_the_words_it_takes(tmp_path):
    file, findings = tmp_path / "nightly.py", Findings()
    file.write_text("from tidewheel import Workflow\nWorkflow('a', schedule='0 2 * * *')\n")
    assert load_python(file, findings) is None
    (finding,) = findings
    assert "unexpected keyword argument 'schedule'" in finding.message
    assert "initial=, final=" in finding.hint and "wait_for_clock=" in finding.hint


def test_a_setting_that_does_not_exist_is_refused_with_the_nearest():
    flow, *_ = integer_flow()
    with pytest.raises(BadStatement, match="did you mean script="):
        flow.task("a", scirpt="true")
    with pytest.raises(BadStatement, match="both script= and run="):
        flow.task("a", script="true", run=["true"])


def test_only_tasks_and_families_can_be_limited():
    flow, *_ = integer_flow()
    with pytest.raises(BadStatement, match="'a' cannot be in a limit"):
        flow.limit("heavy", 2, ["a"])


def test_only_a_family_can_be_inherited_from():
    flow, a = integer_flow("a")
    for parent in (a, "FAM", Workflow("other").family("FAM")):
        with pytest.raises(BadStatement, match="not a family of this workflow"):
            flow.task("b", family=parent)


# -- Mistakes in a definition, found all together


def mistakes(flow: Workflow) -> dict[str, int]:
    """The line of each error, by its message."""
    found = flow.findings(ReadOptions(now=NOW))
    errors = [one for one in found if one.severity is Severity.ERROR]
    assert {one.position.file for one in errors} <= {__file__}
    return {f"{one.message} | {one.hint}": one.position.line for one in errors}


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


def test_every_mistake_is_found_at_once_each_with_its_line():
    flow, a, b = integer_flow("a", "b")
    flow.task("a", script="twice")
    flow.task("bad name")
    flow.task("c", retries="soon", outputs={"failed": "no good"})
    with flow.cycle("P1X"):
        flow.place(b)
    with flow.cycle("P1"):
        a.output("redy") >> b
        a["-PT6H"] >> b
    found = mistakes(flow)
    for message, line in (
        ("the name 'a' is taken at", 'flow.task("a", script="twice")'),
        ("'bad name' cannot be a name", 'flow.task("bad name")'),
        (
            "'soon' is not a valid duration",
            'flow.task("c", retries="soon", outputs={"failed": "no good"})',
        ),
        (
            "'failed' cannot be an output",
            'flow.task("c", retries="soon", outputs={"failed": "no good"})',
        ),
        ("recurrence 'P1X'", 'with flow.cycle("P1X"):'),
        ("a has no output 'redy'", 'a.output("redy") >> b'),
        ("offset of a[-PT6H]", 'a["-PT6H"] >> b'),
    ):
        matching = [place for text, place in found.items() if message in text]
        assert matching == [line_of(line)], message
    with pytest.raises(InvalidDefinition) as caught:
        flow.definition()
    assert len(caught.value.findings) >= 7
    assert __file__ in str(caught.value)


@pytest.mark.req("R007-13")
@pytest.mark.parametrize(
    ("said", "delays"),
    [
        (3, "PT0S, PT0S, PT0S"),
        (0, ""),
        ("1m", "PT1M"),
        ("PT1M", "PT1M"),
        ("2*1m", "PT1M, PT1M"),
        (timedelta(minutes=1), "PT1M"),
        (["1m", "PT5M", timedelta(hours=1), 90, "2*PT1M"], "PT1M, PT5M, PT1H, PT90S, 2*PT1M"),
    ],
)
def test_retries_are_a_count_a_delay_or_delays_as_for_the_queue(in_flow_cylc, said, delays):
    flow = Workflow("w", initial=1, final=5)
    a = flow.task("a", retries=said, timeout="10m")
    with flow.cycle("P1"):
        flow.place(a)
    items = f"[[a]]\nexecution retry delays = {delays}\nexecution time limit = PT10M"
    assert same(flow, in_flow_cylc(integer_text("P1 = a", items)))


@pytest.mark.req("R007-13")
@pytest.mark.parametrize("said", ["3", 2.5, True, -1, 10_001, "soon", ["soon"], [[1]], None])
def test_what_says_no_retries_is_named_by_the_setting_that_was_given(said):
    flow = Workflow("w", initial=1, final=5)
    a = flow.task("a", submission_retries=said)
    with flow.cycle("P1"):
        flow.place(a)
    [finding] = mistakes(flow)
    assert finding.startswith("a: submission_retries: ")


def test_a_time_limit_has_two_names_and_one_value():
    flow = Workflow("w", initial=1, final=5)
    with pytest.raises(BadStatement, match="both time_limit= and timeout="):
        flow.task("a", time_limit="1m", timeout="1m")


def test_an_undeclared_output_says_how_to_declare_it_in_python():
    flow = Workflow("w", initial=1, final=5)
    model = flow.task("model", outputs={"ready": "first day"})
    with flow.cycle("P1"):
        model.output("redy") >> flow.task("a")
    (hint,) = [text.partition(" | ")[2] for text in mistakes(flow)]
    assert hint == (
        "did you mean 'ready'? Or declare it: flow.task('model', outputs={'redy': 'message'})"
    )


def test_a_misspelt_task_is_an_error_that_names_the_one_with_work():
    flow = Workflow("w")
    fetch, publish = flow.task("fetch", script="get"), flow.task("publish", script="put")
    flow.task("model", script="compute")
    with flow.cycle("R1"):
        fetch >> flow.task("modle") >> publish
    wrong, unused = flow.findings(ReadOptions(now=NOW))
    assert (wrong.severity, wrong.code) == (Severity.ERROR, "idle-task")
    assert wrong.message.startswith("modle has no function and no script")
    assert wrong.hint.startswith("did you mean model?")
    assert wrong.position.line == line_of('fetch >> flow.task("modle") >> publish')
    assert unused.severity is Severity.WARNING
    assert unused.message == "model is defined but nothing in the graph runs it"


def test_a_task_that_only_joins_others_says_so():
    def joined(**settings: str) -> list[str]:
        flow = Workflow("w")
        parts = [flow.task(f"part_{number}", script="work") for number in (1, 2)]
        with flow.cycle("R1"):
            all_of(*parts) >> flow.task("join", **settings)
        return [one.hint for one in flow.findings(ReadOptions(now=NOW))]

    (hint,) = joined()
    assert 'flow.task("join", run_mode="skip")' in hint
    assert joined(run_mode="skip") == [] == joined(script="true")


def test_a_sketch_whose_tasks_all_do_nothing_is_no_mistake():
    flow, split, parts = integer_flow("split", "splits")
    with flow.cycle("P1"):
        split >> parts
    assert flow.findings(ReadOptions(now=NOW)) == []


def test_the_checks_of_the_graph_name_lines_of_python():
    flow, a, b = integer_flow("a", "b")
    with flow.cycle("P1"):
        a >> b
        b >> a
    (line,) = mistakes(flow).values()
    assert line_of("b >> a") - 1 <= line <= line_of("b >> a")
    with pytest.raises(InvalidDefinition):
        flow.compile()


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ({"cycling": "gregorian"}, 'initial="20300101T00Z"'),
        ({"cycling": "gregorain", "initial": 1}, "gregorain"),
        ({"initial": "tomorrow"}, "tomorrow"),
        ({"initial": 5, "final": 1}, "before the initial"),
        ({"initial": 1, "runahead": "four"}, "P4"),
    ],
)
def test_points_that_cannot_be_read_are_found(points, words):
    flow = Workflow("w", **points)
    a = flow.task("a")
    with flow.cycle("P1"):
        flow.place(a)
    assert words in " ".join(mistakes(flow))


def test_more_mistakes_that_are_found():
    flow, a = integer_flow("a")
    empty = flow.family("EMPTY")
    root = flow.family("root")
    flow.xtrigger("echo", "echo", succeed=True)
    flow.xtrigger("echo", "echo", succeed=False)
    flow.xtrigger("bad name", "echo")
    flow.limit("group", -1, [a])
    flow.task("b", environment={"1ST": "x"}, meta="no mapping", expire_after="soon")
    flow.task("c", events={"mail_event": ["failed"]}, run_mode="dry", time_limit="2 o'clock")
    with flow.cycle("P1"):
        a >> empty
        root.all >> a
    found = " ".join(mistakes(flow))
    for words in (
        "EMPTY has no members",
        "use flow.defaults(…)",
        "the xtrigger 'echo' is already defined",
        "'bad name' cannot be the name of an xtrigger",
        "the limit 'group' is -1",
        "'1ST' cannot be an environment variable",
        "'no mapping' is not a mapping",
        "b: expire_after",
        "did you mean 'mail events'?",
        "expected one of live",
        '"2 o\'clock" is not a valid duration',
    ):
        assert words in found


# -- Functions as tasks


def _left_out() -> None:
    """Stands for the work of a task."""


def _needs_more(point: int) -> int:
    return point


def _positional(point: int, /) -> int:
    return point


def test_a_function_becomes_a_task_with_its_name_and_stays_at_hand():
    flow = Workflow("w", initial=1, final=5)
    plain = flow.task(_left_out)
    named = flow.task("other", retries=["PT1M"])(_left_out)
    with flow.cycle("P1"):
        plain >> named
    nodes = flow.definition().nodes
    assert plain.function is _left_out
    assert plain.name == "_left_out"
    assert nodes["_left_out"].scripts.main.startswith(
        '"${TIDEWHEEL_PYTHON:-python3}" -m tidewheel.formats.python_api '
    )
    assert nodes["other"].scripts.main.endswith(" other")
    assert nodes["other"].retries.execution == (60.0,)


def test_a_function_that_a_job_cannot_call_is_refused():
    flow, *_ = integer_flow()

    def inner() -> None:
        pass

    for function, words in (
        (inner, "at the top level"),
        (lambda: None, "at the top level"),
        (print, "at the top level"),
        (_positional, "positional only"),
    ):
        with pytest.raises(BadStatement, match=words):
            flow.task(function)


def _returns_text() -> str:
    return ""


def _takes_number(number: int) -> float:
    return number


def _takes_float(number: float, text: str = "") -> None:
    del number, text


def _takes_any(*args: int, **named: int) -> None:
    del args, named


@dataclass
class Called:
    """A workflow with a few functions to be called."""

    flow: Workflow = field(default_factory=lambda: Workflow("args", initial=1, final=2))

    def __post_init__(self):
        self.text = self.flow.task(_returns_text)
        self.number = self.flow.task(_takes_number)
        self.last = self.flow.task(_takes_float)

    @property
    def mistakes(self):
        return " ".join(mistakes(self.flow))


@pytest.mark.req("R007-3")
def test_arguments_that_do_not_fit_are_found_before_the_workflow_runs():
    one = Called()
    one.number(one.text())
    assert "returns str, but number is int" in one.mistakes
    one = Called()
    with one.flow.cycle("P1"):
        one.flow.place(one.number)
    assert "is called without number" in one.mistakes
    one = Called()
    one.last(one.number(number=3), "x")
    assert "returns" not in one.mistakes and "needs" not in one.mistakes


@pytest.mark.req("R007-3")
def test_an_argument_that_is_a_task_is_before_it_in_the_graph():
    one = Called()
    with one.flow.cycle("P1"):
        one.last(one.number[-1])
        one.number(3)
    graph = compiled(one.flow)
    assert list(graph.parents("_takes_float", 2)) == [(1, "_takes_number")]
    [taken] = graph.inputs["_takes_float"]
    assert (taken.variable, taken.text) == ("TIDEWHEEL_ARGUMENT_number", "_takes_number[-P1]")


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda one: one.number(one.text(), one.text()), "cannot be called like this"),
        (lambda one: (one.number(3), one.number(4)), "a second time, with other arguments"),
        (lambda one: one.number(one.text.failed), "has no value"),
        (lambda one: one.flow.task("script", script="true")(one.text), "has no function"),
        (lambda one: one.number([one.text()]), "inside the value"),
        (lambda one: one.number({"k": one.text()}), "inside the value"),
        (lambda one: one.number(one.text() & one.last), "inside the value"),
        (lambda one: one.flow.task(_takes_any)(1, 2), "a job needs their names"),
        (lambda one: one.flow.task(_takes_any)(a=one.text()), "a job needs their names"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused_at_its_line(say, words):
    with pytest.raises(BadStatement, match=words):
        say(Called())


def test_a_task_has_a_function_or_a_script():
    flow, *_ = integer_flow()
    both = flow.task("both", script="true")(_left_out)
    with flow.cycle("P1"):
        flow.place(both)
    assert "keep one of them" in " ".join(mistakes(flow))


def run_python(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_script_of_a_function_calls_it(tmp_path):
    (tmp_path / "sibling.py").write_text("WORD = 'hello'\n", encoding="utf-8")
    file = tmp_path / "flow.py"
    file.write_text(
        "from sibling import WORD\n"
        "from tidewheel.formats.python_api import Workflow\n"
        "flow = Workflow('w')\n"
        "@flow.task(environment={'A': 1})\n"
        "def greet():\n"
        "    print(WORD)\n"
        "with flow.cycle('R1'):\n"
        "    flow.place(greet)\n"
        "if __name__ == '__main__':\n"
        "    print(flow.definition().nodes['greet'].scripts.main)\n",
        encoding="utf-8",
    )
    script = run_python(str(file), cwd=ROOT).stdout
    assert '"$TIDEWHEEL_RUN_DIR"/flow.py' in script  # where a job finds the files of its run
    python, *words = shlex.split(script.replace("$TIDEWHEEL_RUN_DIR", str(tmp_path)))
    assert python == "${TIDEWHEEL_PYTHON:-python3}"
    ended = run_python(*words, cwd=ROOT)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("hello\n", "", 0)
    missing = run_python(*words[:-1], "absent", cwd=ROOT)
    assert "no workflow with a function" in missing.stderr
    assert missing.returncode == 1


CALLED = """
import asyncio
import functools
from tidewheel.formats.python_api import Workflow

flow = Workflow("w")


async def work():
    await asyncio.sleep(0)
    print("done")


@flow.task
async def awaited():
    await work()


@flow.task
def handed_on():
    return work()


@flow.task
def lazy():
    return (print(one) for one in "abc")


@flow.task
async def half():
    return work()


@flow.task
def mapped():
    return map(print, "abc")


@flow.task
def several():
    return {"a": 1, "b": work()}


@flow.task
def not_called():
    return functools.partial(print, "a")


@flow.task
def unseen():
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor().submit(print, "a")


@flow.task
def started():
    import subprocess

    return subprocess.Popen(["sleep", "3"])


@flow.task
def in_thread():
    import threading

    thread = threading.Thread(target=threading.Event().wait, args=(0.3,))
    thread.start()
    return thread


@flow.task
def failed():
    import subprocess

    return [subprocess.run(["false"])]


@flow.task
def well():
    import subprocess

    return subprocess.run(["true"])


@flow.task
async def collects():
    return await asyncio.gather(fails.function(), return_exceptions=True)


@flow.task
async def leaves():
    asyncio.create_task(asyncio.sleep(9))


@flow.task
async def fails():
    raise ValueError("no data")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "status", "words"),
    [
        ("awaited", 0, "done\n"),
        ("handed_on", 0, "done\n"),
        ("lazy", 1, "the function lazy returned a generator that nobody runs or waits for"),
        ("half", 1, "the function half returned a coroutine that nobody runs or waits for"),
        ("mapped", 1, "the function mapped returned a map that nobody runs or waits for"),
        (
            "several",
            1,
            "the function several returned something with a coroutine that nobody",
        ),
        ("not_called", 1, "the function not_called returned a partial that nobody runs"),
        ("unseen", 1, "the function unseen returned a Future that nobody runs"),
        ("started", 1, "the function started returned a Popen that nobody runs or waits for"),
        ("in_thread", 1, "the function in_thread returned a Thread that nobody runs or waits"),
        (
            "failed",
            1,
            "returned something with a CompletedProcess with exit status 1: check it, as "
            "subprocess.run(…, check=True) does",
        ),
        ("well", 0, "what well returned is not stored: a CompletedProcess"),
        (
            "collects",
            1,
            "returned something with the error ValueError('no data') instead of raising it",
        ),
        ("leaves", 0, "had ended, which are cancelled now: sleep; await them"),
        ("fails", 1, "ValueError: no data"),
    ],
)
def test_an_async_function_is_awaited_and_work_that_nobody_does_is_no_success(
    tmp_path, task, status, words
):
    file = tmp_path / "flow.py"
    file.write_text(CALLED, encoding="utf-8")
    ended = run_python("-m", "tidewheel.formats.python_api", str(file), task, cwd=ROOT)
    assert ended.returncode == status
    assert words in ended.stdout + ended.stderr
    assert "never awaited" not in ended.stderr


def _yields() -> Iterator[int]:
    yield 1


async def _yields_async() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [_yields, _yields_async])
def test_a_generator_is_no_task(function):
    flow, *_ = integer_flow()
    with pytest.raises(BadStatement, match="has a 'yield' in it"):
        flow.task(function)


# -- Files that define a workflow


def test_the_workflow_of_a_file_is_found():
    findings = Findings()
    flow = load_python(EXAMPLE, findings)
    assert flow is not None
    assert flow.name == "forecast"
    assert list(findings) == []


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = 1\n", "defines no workflow", 0),
        (
            "from tidewheel.formats.python_api import Workflow as W\na = W('a')\nb = W('b')\n",
            "several workflows: a, b",
            0,
        ),
        ("x = 1\nx +\n", "SyntaxError", 2),
        ("x = 1\n\nraise ValueError('no good')\n", "ValueError: no good", 3),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", 2),
        (
            "from tidewheel.formats.python_api import Workflow\n"
            "flow = Workflow('w')\n"
            "a = flow.task('a')\n"
            "a >> a\n",
            "outside of a cycle",
            4,
        ),
    ],
)
def test_a_file_without_a_usable_workflow_is_a_finding(tmp_path, text, message, line):
    file = tmp_path / "flow.py"
    file.write_text(text, encoding="utf-8")
    findings = Findings()
    assert load_python(file, findings) is None
    (finding,) = findings
    assert message in finding.message
    assert finding.position == Position(str(file), line)


def test_a_file_that_is_not_there_is_a_finding(tmp_path):
    findings = Findings()
    assert load_python(tmp_path / "absent.py", findings) is None
    assert "No such file" in " ".join(one.message for one in findings)


# -- What the documentation shows


@pytest.mark.slow
def test_the_example_compiles_without_findings():
    ended = run_python(str(EXAMPLE), cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_page_shows_the_example_as_it_is():
    page = (ROOT / "docs" / "python_api.md").read_text(encoding="utf-8")
    example = EXAMPLE.read_text(encoding="utf-8")
    assert f'```python title="forecast.py"\n{example}```' in page
