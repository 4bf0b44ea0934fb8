"""flow.cylc: every item is known, or refused with the nearest name or what to write now."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.settings import FlowSettings, Placed, Queue, read_flow
from tidewheel.formats.flow_cylc.source_loader import SourceOptions

GRAPH = '[scheduling]\n    [[graph]]\n        R1 = "a"\n'


def read(folder: Path, text: str, graph: str = GRAPH) -> tuple[FlowSettings, list[str]]:
    (folder / "flow.cylc").write_text(dedent(text) + graph)
    findings = Findings()
    settings = read_flow(folder, SourceOptions(), findings)
    return settings, [
        f"{one.position.line} {one.severity.word}: {one.message} | {one.hint}"
        for one in findings.sorted()
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[runtim]\n", 1, "no section [runtim] | did you mean 'runtime'?"),
        (
            "[runtime]\n[[a]]\nscrpt = x\n",
            3,
            "no item [runtime][a]scrpt | did you mean 'script'?",
        ),
        ("[runtime]\n[[a]]\nScript = x\n", 3, "did you mean 'script'?"),
        ("[runtime]\n[[a]]\ncommand = x\n", 3, "did you mean 'script'?"),
        ("[runtime]\n[[a]]\n[[[enviroment]]]\nX = 1\n", 3, "did you mean 'environment'?"),
        ("[runtime]\n[[a]]\nFOO = x\n", 3, "environment variables of a task go under"),
        ("[runtime]\n[[environment]]\nfoo = x\n", 3, "[[environment]] defines a task called"),
        ("[scheduling]\nscript = x\n", 2, "it belongs under [runtime][NAME]"),
        ("[scheduling]\ninital cycle point = 1\n", 2, "did you mean 'initial cycle point'?"),
        ("[scheduling]\nqueues = a\n", 2, "[scheduling]queues is a section | write [[queues]]"),
        ("[runtime]\n[[a]]\n[[[script]]]\n", 3, "[script] is an item | write script = …"),
        ("[scheduling]\n[[queues]]\n[[[q]]]\nlimits = 3\n", 4, "did you mean 'limit'?"),
        ("[scheduling]\ncycling mode = gregorain\n", 2, "did you mean gregorian?"),
        ("[scheduler]\nUTC mode = yes\n", 2, "'yes' is neither True nor False | write True"),
        (
            "[scheduling]\n[[queues]]\n[[[q]]]\nlimit = many\n",
            4,
            "'many' is not a whole number",
        ),
        ("[scheduling]\n[[queues]]\n[[[q]]]\nlimit = -1\n", 3, "0 means no limit"),
        ("[scheduling]\n[[queues]]\n[[[q]]]\nmembers = a b\n", 4, "separate names by commas"),
        ("[runtime]\n[[a]]\nexecution time limit = 10\n", 3, "10 seconds are PT10S"),
        ("[runtime]\n[[a]]\nexecution time limit = 1\n", 3, "1 second is PT1S"),
        ("[runtime]\n[[a]]\nexecution time limit = 10m\n", 3, "a T before hours"),
        (
            "[runtime]\n[[a]]\nexecution time limit = pt1h\n",
            3,
            "write PT1H: durations are written in capitals",
        ),
        ("[runtime]\n[[a]]\nexecution time limit = -PT1H\n", 3, "is negative | write PT1H"),
        ("[runtime]\n[[a]]\nexecution retry delays = x*PT1M\n", 3, "'x' is not a number"),
        ("[runtime]\n[[a]]\n[[[simulation]]]\nspeedup factor = x\n", 4, "'x' is not a number"),
        ("[runtime]\n[[a]]\nrun mode = fast\n", 3, "expected one of live, skip"),
        ("[scheduling]\nrunahead limit = far\n", 2, "write a number of points such as P4"),
        ("[scheduling]\ncycling mode = integer\nrunahead limit = 6\n", 3, "write P6 for"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_a_fix(tmp_path, text, line, words):
    _, found = read(tmp_path, text)
    assert any(one.startswith(f"{line} error") and words in one for one in found), found


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("[scheduler]\ninstall = bin/\n", "[scheduler]install has no effect"),
        ("[scheduler]\n[[main loop]]\n[[[x]]]\ninterval = PT1M\n", "[main loop] has no effect"),
        (
            "[runtime]\n[[a]]\nexecution polling intervals = PT1M\n",
            "polled only by the command poll",
        ),
        ("[runtime]\n[[a]]\n[[[remote]]]\nretrieve job logs = True\n", "has no effect"),
    ],
)
def test_what_has_no_effect_here_is_accepted_with_a_note(tmp_path, item, words):
    _, found = read(tmp_path, item)
    assert len(found) == 1
    assert " note: " in found[0]
    assert words in found[0]


def test_a_note_is_given_once_however_many_tasks_it_is_about(tmp_path):
    tasks = "".join(f"[[t{n}]]\nexecution polling intervals = PT1M\n" for n in range(50))
    _, found = read(tmp_path, "[runtime]\n" + tasks)
    assert len(found) == 1


def test_every_item_has_its_type(tmp_path):
    settings, found = read(
        tmp_path,
        """
        [meta]
            title = "a title"
            colour = blue
        [scheduler]
            UTC mode = True
            allow implicit tasks = False
            cycle point format = %Y%m%d
            cycle point num expanded year digits = 2
            cycle point time zone = +13
            [[events]]
                stall timeout = PT0S
                abort on stall timeout = False
                stall handlers = notify, "log it, please"
                mail events = stall, shutdown
            [[mail]]
                to = me
                task event batch interval = PT1M
        [scheduling]
            initial cycle point = 2030
            final cycle point = +P1Y
            initial cycle point constraints = T00, T12
            runahead limit = P3
            [[queues]]
                [[[default]]]
                    limit = 50
                [[[small]]]
                    limit = 2
                    members = a, FAM
            [[special tasks]]
                clock-expire = a(PT1H), b
                external-trigger = c("data, there")
                sequential = a
            [[xtriggers]]
                tick = wall_clock(offset=PT1H):PT30S
        """,
    )
    assert found == []
    assert settings.meta == (("title", "a title"), ("colour", "blue"))
    scheduler, scheduling = settings.scheduler, settings.scheduling
    assert (scheduler.utc_mode, scheduler.implicit_tasks_allowed) == (True, False)
    assert scheduler.point_format.text == "%Y%m%d"
    assert scheduler.expanded_year_digits == 2
    assert scheduler.time_zone.position.line == 10
    assert scheduler.events.stall_timeout_seconds == 0.0
    assert scheduler.events.abort_on_stall_timeout is False
    assert scheduler.events.handlers == (("stall", ("notify", "log it, please")),)
    assert scheduler.mail.batch_interval_seconds == 60.0
    assert scheduling.final_point.text == "+P1Y"
    assert scheduling.initial_constraints == ("T00", "T12")
    assert settings.queues == {"default": Queue(50), "small": Queue(2, ("a", "FAM"))}
    special = settings.special_tasks
    assert [(one.name, one.argument) for one in special.clock_expire] == [
        ("a", "PT1H"),
        ("b", ""),
    ]
    assert special.external_trigger[0].argument == "data, there"
    assert [one.name for one in special.sequential] == ["a"]
    (xtrigger,) = settings.xtriggers.values()
    assert (xtrigger.function, xtrigger.arguments) == ("wall_clock", ())
    assert (xtrigger.keywords, xtrigger.interval_seconds) == ((("offset", "PT1H"),), 30.0)
    assert xtrigger.sequential


def test_without_a_word_the_defaults_hold(tmp_path):
    settings, found = read(tmp_path, "")
    assert found == []
    assert settings.scheduling.runahead_limit == Placed("P4")
    assert settings.scheduler.events.stall_timeout_seconds == 3600.0
    assert settings.is_acyclic()
    assert not settings.is_acyclic("2030")


@pytest.mark.parametrize(
    ("old", "advice"),
    [
        ("[cylc]\nUTC mode = True\n", "[cylc] is an old name | write [scheduler]"),
        ("[visualization]\nx = 1\n", "[visualization] is obsolete and has no effect"),
        (
            "[scheduling]\nmax active cycle points = 3\n",
            "write [scheduling]runahead limit = P2",
        ),
        ("[scheduling]\nhold after point = 3\n", "write [scheduling]hold after cycle point"),
        ("[scheduling]\nrunahead limit = 6\n", "write PT6H"),
        (
            "[runtime]\n[[a]]\n[[[job]]]\nexecution time limit = PT1H\n",
            "write [runtime][a]execution time limit",
        ),
        (
            "[runtime]\n[[a]]\n[[[events]]]\nfailed handler = x\n",
            "write [runtime][a][events]failed handlers",
        ),
        ("[runtime]\n[[a]]\n[[[events]]]\nmail to = me\n", "write [runtime][a][mail]to"),
        ("[runtime]\n[[a]]\nextra log files = x\n", "[runtime][a]extra log files is obsolete"),
        (
            "[runtime]\n[[a]]\n[[[suite state polling]]]\ninterval = PT1M\n",
            "write [runtime][a][workflow state polling]",
        ),
        ("[runtime]\n[[a]]\n[[[job]]]\nbatch system = slurm\n", "write platform = NAME"),
        (
            "[scheduler]\n[[events]]\nmail events = stalled\n",
            "event 'stalled' in [scheduler][events]mail events is an old name | write stall",
        ),
    ],
)
def test_what_a_current_cylc_still_upgrades_is_upgraded_with_a_warning(tmp_path, old, advice):
    _, found = read(tmp_path, old)
    assert any(" warning: " in one and advice in one for one in found), found
    assert not any(" error: " in one for one in found)


@pytest.mark.parametrize(
    ("old", "advice"),
    [
        ("title = x\n", "write it under [meta]"),
        ("[dependencies]\n", "write [scheduling] [[graph]]"),
        ("[scheduling]\ninitial cycle time = x\n", "write: initial cycle point"),
        ("[runtime]\n[[a]]\ncommand scripting = x\n", "write: script"),
        ("[runtime]\n[[a]]\nretry delays = x\n", "write: execution retry delays"),
        ("[runtime]\n[[a]]\n[[[remote]]]\nowner = me\n", "name a platform"),
    ],
)
def test_what_no_cylc_of_today_accepts_is_refused_with_advice(tmp_path, old, advice):
    _, found = read(tmp_path, old)
    assert any(" error: " in one and advice in one for one in found), found


def test_upgraded_values_are_used(tmp_path):
    settings, _ = read(
        tmp_path,
        """
        [cylc]
            UTC mode = True
            [[events]]
                timeout = PT5M
            [[parameters]]
                m = 1..2
        [scheduling]
            max active cycle points = 3
        [runtime]
            [[a<m>]]
                [[[job]]]
                    execution time limit = PT1H
                [[[events]]]
                    failed handler = x
                [[[parameter environment templates]]]
                    M = is %(m)s
        """,
    )
    assert settings.scheduler.utc_mode is True
    assert settings.scheduler.events.stall_timeout_seconds == 300.0
    assert settings.scheduling.runahead_limit.text == "P2"
    node = settings.nodes["a_m2"]
    assert node.time_limit_seconds == 3600.0
    assert node.events.handlers == (("failed", ("x",)),)
    assert node.environment == (("M", "is 2"),)


def test_a_new_item_wins_over_its_old_name(tmp_path):
    settings, found = read(
        tmp_path, "[scheduling]\nrunahead limit = P7\nmax active cycle points = 3\n"
    )
    assert settings.scheduling.runahead_limit.text == "P7"
    assert "has no effect, since [scheduling]runahead limit is set, too" in found[0]


def test_old_dependencies_are_a_graph(tmp_path):
    old = dedent("""\
        [scheduling]
            [[dependencies]]
                graph = "start"
                [[[P1D]]]
                    graph = "a => b"
        """)
    settings, found = read(tmp_path, "", old)
    assert [(one.recurrence, one.text) for one in settings.graph] == [
        ("R1", "start"),
        ("P1D", "a => b"),
    ]
    assert settings.graph[1].lines[0].position.line == 5
    assert [one.split(":")[0] for one in found] == ["2 warning"]


def test_old_dependencies_beside_a_graph_are_refused(tmp_path):
    _, found = read(tmp_path, GRAPH + "[[dependencies]]\ngraph = x\n", "")
    assert any("cannot be used together with" in one for one in found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no section [scheduling]"),
        ("[scheduling]\n", "there is no section [scheduling][[graph]]"),
        ("[scheduling]\n[[graph]]\nR1 =\n", "[scheduling][graph] is empty"),
    ],
)
def test_a_definition_without_a_graph_is_refused(tmp_path, text, words):
    _, found = read(tmp_path, text, "")
    assert [words in one for one in found] == [True]


def test_a_missing_graph_is_not_held_against_a_file_with_other_errors(tmp_path):
    _, found = read(tmp_path, "[schedulling]\n", "")
    assert len(found) == 1
    assert "did you mean 'scheduling'?" in found[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("", "there is no function"),
        ("tick", "it has no parentheses"),
        ("tick(", "its parentheses are not closed"),
        ("wall_clock(offset=1)", "'1' is not a valid duration"),
        ("wall_clock(ofset=PT1H)", "did you mean 'offset'?"),
        ("wall_clock(PT1H, PT2H)", "given 2 arguments"),
        ("wall_clock(PT1H, offset=PT1H)", "'offset' is given twice"),
        ("xrandom()", "argument 'percent' is missing"),
        ("echo(%(nobody)s)", "%(nobody)s is not known"),
        ("echo(a=1, a=2)", "argument 'a' is given twice"),
        ("echo(a=1, b)", "argument 'b' follows arguments with names"),
        ("echo('x)", "a ' in the arguments is not closed"),
        ("echo(1-2=3)", "cannot be the name of an argument"),
        ("echo():soon", "'soon' is not a valid duration"),
        ("echo(sequential=3)", "write sequential=True"),
        ("wallclock()", "did you mean 'wall_clock'?"),
        (
            "workflow_state(workflow=a, task=b, point=c)",
            "calls workflow_state in the form used before Cylc 8.3",
        ),
    ],
)
def test_a_wrong_xtrigger_is_explained(tmp_path, call, words):
    _, found = read(tmp_path, f"[scheduling]\n[[xtriggers]]\nx = {call}\n")
    assert any(one.startswith("3 ") and words in one for one in found), found


def test_a_function_of_ones_own_is_found_in_lib_python(tmp_path):
    (tmp_path / "lib" / "python").mkdir(parents=True)
    (tmp_path / "lib" / "python" / "mine.py").write_text("raise SystemExit('never run here')\n")
    settings, found = read(
        tmp_path, "[scheduling]\n[[xtriggers]]\nx = mine(1, two, k='a, b')\n"
    )
    assert found == []
    assert settings.xtriggers["x"].arguments == (1, "two")
    assert settings.xtriggers["x"].keywords == (("k", "a, b"),)


@pytest.mark.parametrize(
    "text",
    [
        "[scheduling]\n[[xtriggers]]\nx-y = wall_clock()\n",
        "[scheduling]\n[[xtriggers]]\n_cylc_x = wall_clock()\n",
        "[scheduling]\n[[special tasks]]\nexternal-trigger = a\n",
        "[scheduling]\n[[special tasks]]\nclock-expire = a(PT1H) b\n",
        "[scheduling]\ncycling mode = 360day\n[[special tasks]]\nclock-expire = a(PT1H)\n",
        "[scheduling]\n[[queues]]\n[[[q]]]\nmembers = a<m>\n",
    ],
)
def test_names_and_special_tasks_are_checked(tmp_path, text):
    _, found = read(tmp_path, text)
    assert len(found) == 1
    assert " error: " in found[0]


@pytest.mark.parametrize("events", ["handler events = exploded", "mail events = stal"])
def test_an_unknown_event_is_worth_a_warning(tmp_path, events):
    _, found = read(tmp_path, f"[scheduler]\n[[events]]\n{events}\n")
    assert [" warning: " in one for one in found] == [True]
