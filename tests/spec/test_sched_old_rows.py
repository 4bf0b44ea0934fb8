"""Rows that another version wrote: those of format 1, and those with more or fewer fields.

`rows_of_format_1.json` was written by the last version that stored prerequisites as bits of the
compiler's numbering (3393b50): for each case the rows before each of its verbs. A case that
fails here means that runs stored by that version would go on wrongly: either the numbering in
`core/sched/persistence.py` was touched, or definitions are compiled to other arrows or terms,
or in another order, than then.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tests.kit.scenario import Scenario
from tests.support.other_numberings import backwards
from tidewheel.core.graph.definition import AllOf, Atom, Group
from tidewheel.core.graph.graph import Graph
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import (
    PoolLedger,
    PutAbsolute,
    PutTask,
    changes,
    everything,
    outdated,
)
from tidewheel.core.sched.task_state import AtomValue
from tidewheel.store.change_rows import changed_rows, read_changes

CASES = json.loads(Path(__file__).with_name("rows_of_format_1.json").read_text())
CUTS = [(case, number) for case in CASES for number in range(len(case["verbs"]))]


def scenario(case) -> Scenario:
    options = {name: case[name] for name in ("runtime", "final", "scheduling") if name in case}
    return Scenario(case["graph"], **options)


def play(run: Scenario, verbs) -> Scenario:
    for verb, *ids in verbs:
        getattr(run, verb)(*ids)
    return run


@pytest.mark.parametrize(
    ("case", "number"), CUTS, ids=[f"{case['case']} {number}" for case, number in CUTS]
)
@pytest.mark.parametrize("order", [None, backwards], ids=["same", "other numbering"])
def test_a_run_that_an_earlier_version_stored_goes_on(case, number, order):
    verbs = case["verbs"]
    calm = play(scenario(case), verbs[:number])
    done = len(calm.submitted)
    play(calm, verbs[number:])
    rows = read_changes(json.dumps(case["rows"][number]))
    run = scenario(case).takes_over(rows)
    if order is not None:
        run.restarts(order)
    play(run, verbs[number:])
    assert sorted(run.submitted) == sorted(calm.submitted[done:])
    assert (run.pool, run.verdicts) == (calm.pool, calm.verdicts)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_what_is_stored_in_an_old_format_is_stored_anew(case):
    for texts in case["rows"]:
        rows = read_changes(json.dumps(texts))
        run = scenario(case).takes_over(rows)
        again = outdated(run.core.plan, rows)
        pooled = [row.row[:2] for row in rows if isinstance(row, PutTask)]
        assert list(again.tasks) == pooled, "every task of the pool, and nothing else"
        assert again.run, "the run says how its points are written"
        written = read_changes(changed_rows(everything(run.core)).text)
        assert not outdated(run.core.plan, written).tasks
        assert not outdated(run.core.plan, written).run
        assert written == everything(run.core)


def test_a_family_at_a_fixed_point_has_its_name_and_no_number():
    case = next(case for case in CASES if case["case"] == "fixed points")
    rows = read_changes(json.dumps(case["rows"][-1]))
    old = {row.key for row in rows if isinstance(row, PutAbsolute)}
    assert {"FAM:0", "FAM:1", "FAM:2", "i"} == {name for _, name, _ in old}
    run = scenario(case).takes_over(rows)
    assert set(run.core.absolute) == {
        (1, "i", "succeeded"),
        (1, "FAM", "all:started"),
        (1, "FAM", "any:succeeded"),
        (1, "FAM", "all:failed|succeeded"),
    }
    again = outdated(run.core.plan, rows).absolute
    assert set(again) == {key for key in old if key[1] != "i"} | set(run.core.absolute) - old


def test_what_was_stored_under_an_old_name_is_gone_when_it_is_stored_anew():
    case = next(case for case in CASES if case["case"] == "fixed points")
    rows = read_changes(json.dumps(case["rows"][-1]))
    run = scenario(case).takes_over(rows)
    ledger = PoolLedger()
    ledger.write(rows)
    ledger.write(changes(run.core, outdated(run.core.plan, rows)))
    kept = {
        row.key: dict(row.values)
        for row in ledger.rows.values()
        if isinstance(row, PutAbsolute)
    }
    assert kept == {
        (1, "i", "succeeded"): {1: AtomValue.TRUE},
        (1, "FAM", "all:started"): {1: AtomValue.TRUE},
        (1, "FAM", "any:succeeded"): {1: AtomValue.TRUE},
        (1, "FAM", "all:failed|succeeded"): {1: AtomValue.TRUE},
    }


@pytest.mark.parametrize("name", ["FAM:3", "FAM:17", "OTHER:0"])
def test_an_old_name_of_a_family_that_nothing_asks_for_names_nothing_new(name):
    case = next(case for case in CASES if case["case"] == "fixed points")
    run = scenario(case)
    row = PutAbsolute((1, name, "succeeded"), ((1, AtomValue.TRUE),))
    assert list(outdated(run.core.plan, [row]).absolute) == [row.key]
    assert run.takes_over([*everything(run.core), row]).runs_to_the_end().completed


def test_rows_with_a_field_more_or_less_are_read():
    run = Scenario("a & b => c\nx:fail => y\nx => z").succeeds("1/a").fails("1/x")
    text = changed_rows(everything(run.core)).text
    known = read_changes(text)

    def grown(value):
        if isinstance(value, dict):
            return {"colour": ["blue"], **{name: grown(one) for name, one in value.items()}}
        return [grown(one) for one in value] if isinstance(value, list) else value

    more = [[kind, grown(body)] for kind, body in json.loads(text)]
    assert read_changes(json.dumps(more)) == known
    for kind, body in json.loads(text):
        for name in body if kind == "task" else ():
            if name not in ("point", "name", "flows"):
                less = {other: one for other, one in body.items() if other != name}
                (row,) = read_changes(json.dumps([[kind, less]]))
                assert row.row[:3] == (body["point"], body["name"], frozenset(body["flows"]))


FLOW = """
[scheduling]
    [[graph]]
        R1 = \"\"\"
            a & b & d => c
            FAM:succeed-all & b => e
        \"\"\"
[runtime]
    [[root]]
        script = true
    [[a, b, c, d, e]]
    [[FAM]]
    [[m1, m2]]
        inherit = FAM
"""


@pytest.fixture
def driven(tmp_path):
    run = DrivenRun(tmp_path, FLOW)
    yield run
    run.close()


def test_a_scheduler_that_numbers_otherwise_carries_a_run_on(driven):
    driven.ends("1/a", "1/m1")
    driven.plan_of = lambda graph: build_index(graph, backwards)
    driven.crash().ends("1/b").crash().ends("1/m2", "1/d")
    assert driven.running == ["1/c/1", "1/e/1"]
    assert driven.ends("1/c", "1/e").status == "completed"
    assert "Reload" not in driven.log
    assert len(driven.submitted) == 7


def members_instead_of_families(graph: Graph) -> DependencyIndex:
    """The plan of a version that knows no counted families, and means the same."""

    def expanded(condition):
        if isinstance(condition, Group):
            (output,) = condition.outputs
            members = graph.families[condition.family].members
            return AllOf(tuple(Atom(one, output, condition.offset) for one in members))
        if isinstance(condition, AllOf):
            return AllOf(tuple(map(expanded, condition.terms)))
        return condition

    arrows = tuple(replace(one, condition=expanded(one.condition)) for one in graph.arrows)
    return replace(build_index(replace(graph, arrows=arrows)), graph=graph)


def test_a_scheduler_that_asks_for_other_atoms_looks_them_up(driven):
    driven.ends("1/a", "1/b", "1/m1")
    driven.plan_of = members_instead_of_families
    driven.crash()
    assert driven.log.count("computed again from the stored history of the run") == 1
    driven.plan_of = build_index
    driven.crash().ends("1/m2", "1/d")
    assert driven.running == ["1/c/1", "1/e/1"]
    assert driven.ends("1/c", "1/e").status == "completed"
    assert driven.log.count("computed again from the stored history of the run") == 1
