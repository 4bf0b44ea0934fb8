"""Which tasks an id means (SEMANTICS §8, "Ids")."""

import pytest

from tests.kit.scenario import Scenario, compile_flow
from tidewheel.core.operator.selection import job_of, named_tasks, select, unique_key
from tidewheel.core.operator.verbs import Hold, Pause
from tidewheel.errors import Refused

FAMILIES = "[[FAM]]\n[[fa, fb]]\ninherit = FAM\n[[z, lone]]\n"


def a_run(**options):
    """1/fa failed, 1/fb runs, 1/z waits, 2/lone is held before it came; three points."""
    run = Scenario("fa & fb => z\nlone[-P1] => lone", FAMILIES, final=3, **options)
    return run.succeeds("2/fb").fails("1/fa")


def ids(run, *texts, **options):
    return [run.core.plan.name_of(key) for key in select(run.core, texts, **options)]


def refusal(run, *texts, **options):
    with pytest.raises(Refused) as refused:
        select(run.core, texts, **options)
    return str(refused.value)


def test_under_cylc8_what_is_not_there_is_left_out_beside_what_is():
    run = a_run(policy="cylc8")
    assert ids(run, "1/fb", "1/nobody", "9/fb") == ["1/fb"]
    first = refusal(run, "1/nobody")
    assert "nobody" in first
    assert refusal(run, "1/nobody", "9/fb") == first
    assert refusal(a_run(), "1/fb", "1/nobody") == first


@pytest.mark.parametrize("text", ["1/fb", "fb.1", "//1/fb", "1/fb/", " 1/fb ", "^/fb", "fb.^"])
def test_one_task_can_be_named_in_several_ways(text):
    assert ids(a_run(), text) == ["1/fb"]


def test_a_task_that_is_not_in_the_pool_can_be_named():
    run = a_run()
    assert "2/z" in run.pool
    assert ids(run, "3/z", "$/z", "2/fb") == ["2/fb", "3/z"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1/f*", ["1/fa", "1/fb"]),
        ("*/fa", ["1/fa", "2/fa", "3/fa"]),
        ("f?.1", ["1/fa", "1/fb"]),
        ("*/FAM", ["1/fa", "1/fb", "2/fa", "3/fa", "3/fb"]),
        ("1/FAM", ["1/fa", "1/fb"]),
        ("1/root", ["1/fa", "1/fb", "1/lone"]),
        ("1", ["1/fa", "1/fb", "1/lone"]),
        ("[12]/fa", ["1/fa", "2/fa"]),
    ],
)
@pytest.mark.req("R001-45")
def test_globs_and_families_take_what_is_pooled(text, meant):
    assert ids(a_run(), text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("*/*:failed", ["1/fa"]),
        ("*:incomplete", ["1/fa"]),
        ("1/*:running", ["1/fb", "1/lone"]),
        ("*/fb:active", ["1/fb", "3/fb"]),
        ("*:waiting/z", ["2/z"]),
        ("1/fa:failed", ["1/fa"]),
        ("2/fb:succeeded", ["2/fb"]),
        ("*/*:fail*", ["1/fa"]),
    ],
)
def test_tasks_can_be_chosen_by_their_status(text, meant):
    assert ids(a_run(), text) == meant


def test_held_queued_and_unreleased_tasks_have_words_of_their_own():
    run = Scenario("a => b", final=9, scheduling="[[queues]]\n[[[q]]]\nlimit = 1\nmembers = a")
    run.holds("2/a")
    assert ids(run, "*:held") == ["2/a"]
    assert ids(run, "*:queued") == ids(run, "*:ready") == ["3/a", "4/a", "5/a"]
    assert ids(run, "*:runahead") == ids(run, "*/a:unreleased") == ["6/a"]
    assert ids(run, "*:running", "*:active") == ["1/a"]


def test_a_blocked_task_and_one_that_waits_for_the_world_can_be_chosen():
    run = Scenario("m[-P1] => m\nm:fail => mail", final=2).fails("1/m").succeeds("1/mail")
    assert ids(run, "*:blocked") == ["2/m"]
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)")
    assert ids(run, "*:pending") == ["1/a"]


def test_tasks_that_are_not_in_the_pool_need_a_word_where_they_are_not_named():
    run = a_run()
    assert refusal(run, "3/z*", all_at_point=False) == (
        "no task in the pool matches 3/z*; there is 2/z (waiting); "
        "--all-at-point also selects tasks that are not in the pool"
    )
    assert "--all-at-point" not in refusal(run, "3/z*")  # of a command without that option
    assert ids(run, "3/z*", all_at_point=True) == ["3/z"]
    assert ids(run, "2/FAM", all_at_point=True) == ["2/fa", "2/fb"]
    assert ids(run, "2", all_at_point=True) == ["2/fa", "2/fb", "2/lone", "2/z"]
    assert "no task in the pool" in refusal(run, "7/z*", all_at_point=True)


def test_where_only_pooled_tasks_can_be_meant_others_are_refused():
    run = a_run()
    assert refusal(run, "3/z", pooled_only=True) == (
        "3/z is not in the pool: it has ended, or has not entered it yet"
    )
    assert "all-at-point" not in refusal(run, "3/z*", pooled_only=True)


def test_tasks_that_are_held_before_they_come_count_as_pooled_where_that_helps():
    run = a_run().holds("3/z")
    assert ids(run, "*/z", also=run.core.run.held_tasks) == ["2/z", "3/z"]


def test_an_unknown_name_is_refused_with_the_nearest_one():
    run = a_run()
    assert refusal(run, "1/lome") == (
        "there is no task lome in this workflow; did you mean lone?"
    )
    assert refusal(run, "1/xylophone") == (
        "there is no task xylophone in this workflow; there are fa, fb, z, lone"
    )


def test_of_many_names_some_are_shown():
    names = "\n".join(f"task_number_{number}" for number in range(9))
    assert refusal(Scenario(names), "1/zzz").endswith(
        "task_number_2, task_number_3, task_number_4 and 4 more"
    )


def test_a_point_off_the_sequence_is_refused_with_the_points_next_to_it():
    run = Scenario("P2 = a\nP1 = b", final=9)
    assert refusal(run, "2/a") == "there is no 2/a: a does not run there (nearest: 1, 3)"
    assert refusal(run, "0/a") == "there is no 0/a: a does not run there (nearest: 1)"


def test_a_task_that_a_reload_took_away_runs_at_no_point():
    run = Scenario("a\nb").reloads("a")
    assert refusal(run, "2/b") == "there is no 2/b: b runs at no point"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is not a task id; write POINT/NAME, such as 2/foo"),
        ("1/2/3/4", "is not a task id"),
        ("1//fa", "is not a task id"),
        ("1/fa/x", "the third part of an id is a submit number, not 'x'"),
        ("1/fa:sleeping", "tasks can be chosen by status (waiting, held"),
        ("fa", r"fa names no point; write POINT/fa, or '*/fa'"),
        ("FAM", "FAM names no point"),
        (
            "what",
            "'what' is neither a point nor a task of this run; points look like 1, ^ or $",
        ),
        ("lome", "'lome' is neither a point nor a task of this run; did you mean POINT/lone?"),
        ("what/fa", "'what' is not a point of this run"),
        ("1/fb:failed", "1/fb:failed: 1/fb is running and active"),
        ("3/z:failed", "3/z is not in the pool"),
        ("2/lone:expired", "2/lone is not in the pool"),
    ],
)
def test_what_means_nothing_is_refused_with_what_would(text, said):
    assert said in refusal(a_run(), text)


def test_a_run_without_a_final_point_knows_no_dollar():
    run = Scenario(
        compile_flow("""
        [scheduling]
            cycling mode = integer
            initial cycle point = 1
            [[graph]]
                P1 = a
        [runtime]
            [[a]]
    """)
    )
    assert "$ is the final point, and this run has none" in refusal(run, "$/a")


def test_at_least_one_task_and_not_too_many_must_be_named():
    assert "no task was named" in refusal(a_run())
    assert "at most 10000" in refusal(a_run(), *["1/fa"] * 10_001)


def test_one_task_is_a_plain_name_at_a_point():
    run = a_run()
    assert unique_key(run.core, "3/z") == (3, "z")
    for text in ("*/z", "1/f*", "1"):
        with pytest.raises(Refused, match="must name one task"):
            unique_key(run.core, text)
    with pytest.raises(Refused, match="names a family"):
        unique_key(run.core, "1/FAM")
    with pytest.raises(Refused, match="not in the pool"):
        unique_key(run.core, "3/z", pooled_only=True)


def test_a_job_is_a_task_and_perhaps_a_submit_number():
    run = a_run()
    assert job_of(run.core, "1/fa") == ((1, "fa"), None)
    assert job_of(run.core, "1/fa/02") == ((1, "fa"), 2)


DATES = """
    [scheduler]
        cycle point format = {format}
    [scheduling]
        initial cycle point = 2000-01-01T00:00Z
        final cycle point = 2000-01-03T00:00Z
        [[graph]]
            PT12H = a
    [runtime]
        [[a]]
"""


@pytest.mark.parametrize(
    "text",
    [
        "20000101T1200Z/a",
        "2000-01-01T12:00Z/a",
        "20000101T12/a",
        "2000-01-01T12:00:00Z/a",
        "2000-01-01T13+01/a",
        "2000-01-01T10:30-01:30/a",
        "a.20000101T1200Z",
        "2000-01-01T12:00Z/a:running",
    ],
)
def test_dates_are_read_as_people_write_them(text):
    run = Scenario(compile_flow(DATES.format(format="CCYYMMDDThhmmZ")))
    assert ids(run, text) == ["20000101T1200Z/a"]


def test_a_date_may_be_shortened_from_its_end():
    run = Scenario(compile_flow(DATES.format(format="CCYYMMDDThhmmZ")))
    assert ids(run, "2000/a", "20000102/a") == ["20000101T0000Z/a", "20000102T0000Z/a"]


@pytest.mark.parametrize("text", ["2000-13-01/a", "2000-02-30/a", "2000-01-01T25/a", "x/a"])
def test_what_is_no_date_is_refused(text):
    run = Scenario(compile_flow(DATES.format(format="CCYYMMDDThhmmZ")))
    assert "is not a point of this run; points look like 20000101T0000Z" in refusal(run, text)


def test_a_date_that_the_format_cannot_hold_is_refused():
    run = Scenario(compile_flow(DATES.format(format="CCYYMMDDThhmmZ")))
    assert "is not a point of this run" in refusal(run, "+99999-01-01/a")


def test_where_nothing_like_it_is_pooled_nothing_is_named():
    assert refusal(Scenario("a => b"), "*/b") == "no task in the pool matches */b"


def test_the_tasks_that_a_command_names_are_known_before_it_is_obeyed():
    run = Scenario("a => b & c", final=3)
    given = Hold(ids=("2/a", "3", "*/b", "1/nobody", "x/y/z/0/0"))
    named = named_tasks(run.core, given)
    assert sorted(map(run.id_of, named)) == ["2/a", "3/a", "3/b", "3/c"]
    assert named_tasks(run.core, Pause()) == []
