"""flow.cylc: families, parameters and what a task has in the end."""

from __future__ import annotations

import pickle
from pathlib import Path
from textwrap import dedent

import pytest

from tidewheel.core.graph.definition import NodeDef, RunMode
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.settings import FlowSettings, read_flow
from tidewheel.formats.flow_cylc.source_loader import SourceOptions

GRAPH = '[scheduling]\n    [[graph]]\n        R1 = "a"\n'


def read(folder: Path, text: str) -> tuple[FlowSettings, list[str]]:
    (folder / "flow.cylc").write_text(dedent(text) + GRAPH)
    findings = Findings()
    settings = read_flow(folder, SourceOptions(), findings)
    return settings, [
        f"{one.position.line} {one.severity.word}: {one.message} | {one.hint}"
        for one in findings.sorted()
    ]


def nodes(folder: Path, text: str) -> dict[str, NodeDef]:
    settings, found = read(folder, text)
    assert found == []
    return dict(settings.nodes)


def test_a_task_has_its_own_settings_over_its_families_and_roots(tmp_path):
    found = nodes(
        tmp_path,
        """
        [runtime]
            [[root]]
                pre-script = root pre
                script = root
                [[[environment]]]
                    A = root
                    B = root
            [[FAM]]
                script = fam
                [[[environment]]]
                    B = fam
                    C = fam
            [[a]]
                inherit = FAM
                post-script = own
                [[[environment]]]
                    A = own
            [[b]]
        """,
    )
    assert found["a"].lineage == ("a", "FAM", "root")
    assert found["a"].scripts.pre == "root pre"
    assert found["a"].scripts.main == "fam"
    assert found["a"].scripts.post == "own"
    assert found["a"].environment == (("A", "own"), ("B", "fam"), ("C", "fam"))
    assert found["b"].scripts.main == "root"


def test_an_empty_item_takes_back_what_was_inherited(tmp_path):
    found = nodes(
        tmp_path,
        """
        [runtime]
            [[FAM]]
                script = fam
                execution time limit = PT1H
                execution retry delays = PT1M
            [[a]]
                inherit = FAM
                script =
                execution time limit =
                execution retry delays =
        """,
    )
    assert found["a"].scripts.main == ""
    assert found["a"].time_limit_seconds is None
    assert found["a"].retries.execution == ()


def test_several_parents_are_looked_up_in_the_order_of_python(tmp_path):
    found = nodes(
        tmp_path,
        """
        [runtime]
            [[X]]
                script = x
            [[Y]]
                script = y
                env-script = y
            [[A]]
                inherit = X
            [[B]]
                inherit = X, Y
            [[a]]
                inherit = A, B
        """,
    )
    assert found["a"].lineage == ("a", "A", "B", "X", "Y", "root")
    assert found["a"].scripts.main == "x"
    assert found["a"].scripts.env == "y"


def test_members_of_a_family_are_the_tasks_below_it_in_order(tmp_path):
    settings, _ = read(
        tmp_path,
        """
        [runtime]
            [[OUTER]]
            [[INNER]]
                inherit = OUTER
            [[z, a]]
                inherit = INNER
            [[b]]
                inherit = None, OUTER
        """,
    )
    families = settings.families
    assert families.members["OUTER"] == ("z", "a", "b")
    assert families.members["INNER"] == ("z", "a")
    assert families.is_family("OUTER")
    assert not families.is_family("a")
    drawn_in = families.first_parents
    assert (drawn_in["a"], drawn_in["INNER"], drawn_in["b"]) == ("INNER", "OUTER", "root")
    assert settings.tasks == ("z", "a", "b")


@pytest.mark.parametrize(
    ("runtime", "line", "words"),
    [
        ("[[a]]\ninherit = FMA\n[[FAM]]\n", 3, "did you mean 'FAM'?"),
        ("[[a]]\ninherit = X\n", 3, "add [[X]] under [runtime]"),
        ("[[a]]\ninherit = None\n", 3, "from None and from nothing else"),
        ("[[a]]\ninherit = F, None\n[[F]]\n", 3, "only as the first parent"),
        ("[[a]]\ninherit = F, F\n[[F]]\n", 3, "inherits twice from 'F'"),
        ("[[a]]\ninherit = a\n", 3, "it inherits from itself: a -> a"),
        ("[[a]]\ninherit = b\n[[b]]\ninherit = a\n", 5, "from itself: a -> b -> a"),
        ("[[F]]\n[[a]]\ninherit = root, F\n", 4, "name a family before the families"),
        ("[[a b]]\n", 2, "'a b' cannot be a name"),
        ("[[_cylc_a]]\n", 2, "reserved"),
        ("[[a]]\n[[[environment]]]\n1X = 1\n", 4, "'1X' cannot be the name of an environment"),
        ("[[a]]\n[[[outputs]]]\nfailed = x\n", 4, "'failed' cannot be the name of an output"),
        ("[[a]]\n[[[outputs]]]\nx.y = x\n", 4, "outputs have letters"),
        ("[[a]]\n[[[outputs]]]\n_cylc = x\n", 4, "reserved"),
        ("[[a]]\n[[[outputs]]]\nx =\n", 4, "write the message that the job sends"),
        ("[[a]]\n[[[outputs]]]\nx = a b: c\n", 4, "a colon may only follow the first word"),
        ("[[a]]\n[[[outputs]]]\nx = failed\n", 4, "message of a built-in output"),
        ("[[a]]\n[[[outputs]]]\nx = _cylc\n", 4, "reserved"),
        ("[[a]]\n[[[outputs]]]\nx = m\ny = m\n", 2, "have the same message 'm'"),
        ("[[a]]\n[[[skip]]]\noutputs = succeeded, failed\n", 2, "both succeeded and failed"),
        ("[[a]]\nplatform = `x`\n", 3, "write $(command)"),
        (
            "[[a]]\nplatform = x\n[[[remote]]]\nhost = y\n",
            5,
            "cannot be set together with platform",
        ),
        (
            "[[a]]\n[[[events]]]\nfailed handlers = x %(nothing)s\n",
            2,
            "%(nothing)s is not known",
        ),
        ("[[a]]\n[[[events]]]\nfailed handlers = x 100%\n", 2, "write %% for a percent sign"),
        ("[[a]]\n[[[events]]]\nmail events = faild\n", 2, "did you mean 'failed'?"),
        (f"[[a]]\ncompletion = {'(' * 3000}\n", 3, "more than 2000 characters"),
    ],
)
def test_a_mistake_in_the_runtime_is_named_with_a_fix(tmp_path, runtime, line, words):
    _, found = read(tmp_path, "[runtime]\n" + runtime)
    assert any(one.startswith(f"{line} ") and words in one for one in found), found


def test_handlers_may_show_the_meta_items_of_the_task_and_the_workflow(tmp_path):
    nodes(
        tmp_path,
        """
        [meta]
            owner = me
        [runtime]
            [[a]]
                [[[meta]]]
                    importance = high
                [[[events]]]
                    handlers = tell %(importance)s %(workflow_owner)s %(user@host)s 100%%
                    handler events = failed, ready
                [[[outputs]]]
                    ready = all is ready
        """,
    )


def test_a_whole_runtime_becomes_one_value(tmp_path):
    node = nodes(
        tmp_path,
        """
        [runtime]
            [[a]]
                completion = succeeded or failed
                platform = big
                work sub-directory = shared
                run mode = skip
                submission retry delays = 2*PT1M, PT1H
                [[[meta]]]
                    title = T
                [[[skip]]]
                    outputs = x
                    disable task event handlers = False
                [[[simulation]]]
                    default run length = PT20S
                    speedup factor = 2.5
                    fail cycle points = 1, 3
                    fail try 1 only = False
                [[[environment filter]]]
                    include = A, B
                    exclude = B
                [[[environment]]]
                    A = 1
                    B = 2
                    C = 3
                [[[events]]]
                    execution timeout = PT1M
                    handler retry delays = PT1S
                [[[mail]]]
                    from = me
                    to = you
                [[[workflow state polling]]]
                    interval = PT5S
                    max-polls = 3
                    message = hello
                [[[directives]]]
                    --nodes = 2
                    -q = fast
                [[[outputs]]]
                    x = made x
        """,
    )["a"]
    assert node.completion == "succeeded or failed"
    assert node.run_mode is RunMode.SKIP
    assert node.retries.submission == (60.0, 60.0, 3600.0)
    assert node.environment == (("A", "1"),)
    assert node.outputs == (("x", "made x"),)
    assert node.place.directives == (("--nodes", "2"), ("-q", "fast"))
    assert (node.place.platform, node.place.work_subdirectory) == ("big", "shared")
    assert node.skip.outputs == ("x",)
    assert node.skip.handlers_disabled is False
    assert node.simulation.run_seconds == 20.0
    assert node.simulation.fail_points == ("1", "3")
    assert node.events.execution_timeout_seconds == 60.0
    assert (node.mail.sender, node.mail.to) == ("me", "you")
    assert node.polling.polls_max == 3
    assert pickle.loads(pickle.dumps(node)) == node
    assert hash(node) == hash(pickle.loads(pickle.dumps(node)))


@pytest.mark.parametrize(
    ("section", "item"),
    [("simulation", "time limit buffer = PT1S"), ("job", "batch submit command template = x")],
)
def test_an_item_that_nobody_acts_on_is_told_to_have_no_effect(tmp_path, section, item):
    _, found = read(tmp_path, f"[runtime]\n[[a]]\n[[[{section}]]]\n{item}\n")
    name = item.partition(" =")[0]
    assert any(f"[runtime][a][{section}]{name} has no effect" in one for one in found), found


def test_what_tasks_inherit_is_shared_and_not_copied(tmp_path):
    found = nodes(
        tmp_path,
        """
        [runtime]
            [[FAM]]
                script = long
                [[[environment]]]
                    A = 1
            [[a, b]]
                inherit = FAM
            [[c]]
                inherit = FAM
                platform = other
        """,
    )
    assert found["a"].environment is found["b"].environment is found["c"].environment
    assert found["a"].scripts is found["c"].scripts


def test_nodes_that_say_the_same_are_equal_wherever_they_stand(tmp_path):
    first = nodes(tmp_path, "[runtime]\n[[a]]\nscript = x\n")["a"]
    second = nodes(tmp_path, '\n\n[runtime]\n[[a]]\nscript = "x"  # same\n')["a"]
    assert first == second
    assert first.position.line != second.position.line


def test_a_task_without_a_section_has_what_root_has(tmp_path):
    settings, _ = read(tmp_path, "[runtime]\n[[root]]\nscript = for all\n")
    node = settings.implicit_node("new")
    assert (node.name, node.lineage, node.scripts.main) == ("new", ("new", "root"), "for all")


def test_parameters_make_a_task_of_each_combination(tmp_path):
    found = nodes(
        tmp_path,
        """
        [task parameters]
            m = 1..10..3
            animal = cat, dog
            [[templates]]
                animal = -%(animal)s
        [runtime]
            [[FAM<m>]]
                script = fam
            [[a<m, animal>]]
                inherit = FAM<m>
                [[[environment]]]
                    WHO = %(animal)s number %(m)03d
                    PLAIN = 100%
            [[a<m=4,animal=cat>]]
                script = special
            [[b<animal>x]]
                inherit = "FAM<m=1>"
        """,
    )
    assert found["a_m07-dog"].environment == (("WHO", "dog number 007"), ("PLAIN", "100%"))
    assert found["a_m07-dog"].parameters == (("m", 7), ("animal", "dog"))
    assert found["a_m07-dog"].lineage == ("a_m07-dog", "FAM_m07", "root")
    assert found["a_m04-cat"].scripts.main == "special"
    assert found["a_m04-dog"].scripts.main == "fam"
    assert found["b-catx"].parameters == (("animal", "cat"), ("m", 1))
    assert len(found) == 1 + 4 + 8 + 2


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ("1..3", ["a_m1", "a_m2", "a_m3"]),
        ("8..10", ["a_m08", "a_m09", "a_m10"]),
        ("-1..1", ["a_m-1", "a_m+0", "a_m+1"]),
        ("x, y-1", ["a_x", "a_y-1"]),
        ("007, b", ["a_007", "a_b"]),
        ("084_132", ["a_084_132"]),
        ("3, 1", ["a_m3", "a_m1"]),
    ],
)
def test_the_kind_of_values_decides_how_they_are_written(tmp_path, values, names):
    found = nodes(tmp_path, f"[task parameters]\nm = {values}\n[runtime]\n[[a<m>]]\n")
    assert [name for name in found if name != "root"] == names


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[runtime]\n[[a<n>]]\n", 2, "parameter 'n' in a<n> is not defined | define it"),
        ("[task parameters]\nmem = 1\n[runtime]\n[[a<men>]]\n", 4, "did you mean 'mem'?"),
        ("[task parameters]\nm =\n[runtime]\n[[a<m>]]\n", 4, "has no values"),
        ("[task parameters]\nm = 1..{{N}}\n[runtime]\n[[a<m>]]\n", 4, "has no values"),
        ("[task parameters]\nm = 1..2\n[runtime]\n[[a<m-1>]]\n", 4, "are for graphs"),
        ("[task parameters]\nm = 1..2\n[runtime]\n[[a<m=7>]]\n", 4, "its values are 1, 2"),
        ("[task parameters]\nm = 1..2\n[runtime]\n[[a<m]]\n", 4, "brackets < > do not match"),
        (
            "[task parameters]\nm = 1..2\n[runtime]\n[[a<!>]]\n",
            4,
            "<!> in a<!> is not understood",
        ),
        ("[task parameters]\nm = 1..2, x\n", 2, "a range of numbers is mixed with names"),
        ("[task parameters]\nm = a b\n", 2, "cannot be a value of a parameter"),
        ("[task parameters]\nm = 1..9..0\n", 2, "has a step of 0"),
        ("[task parameters]\nm = 1..99999999\n", 2, "is too large"),
        ("[task parameters]\nm = x\n[[templates]]\nm = %(m)d\n", 4, "%(name)s for strings"),
        ("[task parameters]\nm = x\n[[templates]]\nm = %(n)s\n", 4, "'n', which has no value"),
        ("[task parameters]\nm = x\n[[templates]]\nm = 9%\n", 4, "a % that is not a field"),
        (
            "[task parameters]\nm = 1..2\n[runtime]\n[[F<m>]]\n[[a]]\ninherit = F<m>\n",
            6,
            "give a value as in <m=1>",
        ),
        (
            "[task parameters]\nm = 1..2\n[runtime]\n[[F<m>]]\n[[a<m>]]\ninherit = F<m-1>\n",
            6,
            "an offset has no meaning here",
        ),
        (
            "[task parameters]\na = 1..999\nb = 1..999\n[runtime]\n[[x<a,b>]]\n",
            5,
            "there are 998001 tasks and families",
        ),
    ],
)
def test_a_wrong_parameter_is_explained(tmp_path, text, line, words):
    _, found = read(tmp_path, text)
    assert any(one.startswith(f"{line} error") and words in one for one in found), found


def test_queues_and_special_tasks_may_use_parameters(tmp_path):
    settings, found = read(
        tmp_path,
        """
        [task parameters]
            m = 1..2
        [scheduling]
            [[queues]]
                [[[q]]]
                    members = a<m>
            [[special tasks]]
                clock-expire = a<m>(PT1H)
        """,
    )
    assert found == []
    assert settings.queues["q"].members == ("a_m1", "a_m2")
    expire = settings.special_tasks.clock_expire
    assert [(one.name, one.argument) for one in expire] == [("a_m1", "PT1H"), ("a_m2", "PT1H")]
