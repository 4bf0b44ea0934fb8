"""Failures that are alike are one line, whatever jobs wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.views.error_groups import (
    WORDS_LENGTH_MAX,
    Failure,
    end_and_words,
    group_text,
    grouped,
    label_of,
    without_numbers,
)


def failed(name, error, *, point=1, family="", state="failed", exit_status=None):
    id_ = f"{point}/{name}"
    return Failure((point, name), id_, id_, name, family, state, exit_status, error)


def exited(name, words, status=3, **more):
    tail = f"; last line of job.err: {words}" if words else ""
    return failed(name, f"exit status {status}{tail}", exit_status=status, **more)


def texts(*failures, waiting=0):
    return [group_text(those, waiting) for those in grouped(failures)]


def test_members_that_failed_for_one_reason_are_one_line():
    members = [exited(f"member_{n:02d}", f"CFL violated at step {n * 7}") for n in range(63)]
    assert texts(*members, waiting=1) == [
        "63 tasks failed in the same way (member_*): exit 3, CFL violated at step …; 1 "
        "task waits for them"
    ]


def test_a_failure_alone_is_told_by_its_name_with_what_waits_for_it():
    assert texts(exited("model", "CFL violated"), waiting=2) == [
        "1/model failed (exit 3): CFL violated; 2 tasks wait for it"
    ]


def test_a_signal_is_not_told_as_an_exit_status_beside_the_reason_for_it():
    late = "it ran longer than its limit of 2 s"
    assert texts(failed("model", late, exit_status=-15)) == [f"1/model failed: {late}"]


def test_words_that_are_the_same_are_told_with_their_numbers():
    those = [exited(f"m{n}", "disk 7 is full") for n in range(3)]
    assert texts(*those) == ["3 tasks failed in the same way (m*): exit 3, disk 7 is full"]


@pytest.mark.parametrize(
    "other",
    [
        exited("m2", "no such file"),
        exited("m2", "CFL violated", status=4),
        exited("m2", ""),
        failed("m2", "ended by SIGKILL; last line of job.err: CFL violated", exit_status=-9),
        exited("m2", "CFL violated")._replace(state="submit-failed"),
        exited("other", "CFL violated"),
    ],
)
def test_what_differs_in_more_than_numbers_is_another_group(other):
    assert len(grouped([exited("m1", "CFL violated"), other])) == 2


def test_names_of_one_family_are_alike_if_they_said_the_same_and_not_if_they_said_nothing():
    nl, uk = (exited(name, "no data", family="MODELS") for name in ("model_nl", "model_uk"))
    assert [label_of(those) for those in grouped([nl, uk])] == ["MODELS"]
    silent = [exited(one.name, "", family="MODELS") for one in (nl, uk)]
    assert texts(*silent) == [
        "1/model_nl failed (exit 3): no message",
        "1/model_uk failed (exit 3): no message",
    ]


def test_points_and_paths_do_not_tell_failures_apart():
    those = [
        exited("model", f"cannot open /data/2026111{n}T0000Z/in.nc: missing", point=n)
        for n in (1, 2)
    ]
    assert texts(*those) == [
        "2 tasks failed in the same way (model): exit 3, cannot open … missing"
    ]


def test_the_largest_group_comes_first_and_each_is_in_the_order_of_points():
    one = exited("a", "x", point=1)
    two, three = exited("b", "y", point=3), exited("b", "y", point=2)
    assert [[each.id for each in those] for those in grouped([one, two, three])] == [
        ["2/b", "3/b"],
        ["1/a"],
    ]


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ("ended by SIGKILL", ("killed by SIGKILL", "")),
        ("exit status 1", ("exit 1", "")),
        ("exit status 1; last line of its log: gone", ("exit 1", "gone")),
        ("process 77 is gone and left no exit status", ("", "process 77 is gone and left no")),
        ("", ("", "")),
    ],
)
def test_how_a_job_ended_is_told_apart_from_what_it_wrote(error, found):
    end, words = end_and_words(failed("a", error))
    assert (end, words[: len(found[1])]) == found


def test_a_task_of_which_nothing_is_known_has_only_failed():
    assert texts(failed("a", "")) == ["1/a failed"]
    assert texts(failed("a", "", state="submit-failed")) == ["1/a failed to submit"]


@given(st.text(max_size=5_000))
def test_whatever_a_job_writes_is_one_short_line_that_controls_nothing(written):
    (text,) = texts(exited("a", written))
    assert text.isprintable() and len(text) < WORDS_LENGTH_MAX + 100
    assert "\n" not in without_numbers(text)


def test_a_long_hostile_line_is_cut_before_it_is_compared():
    lines = ["9/" * 400_000 + ending for ending in ("a", "b")]
    (those,) = grouped([exited("m1", lines[0]), exited("m2", lines[1])])
    assert len(those) == 2 and len(group_text(those, 0)) < 2 * WORDS_LENGTH_MAX
