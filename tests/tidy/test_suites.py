"""Every test is run: a file that no suite names would never fail again."""

import pytest

from tests.run_suites import ROOT, SUITES, Suite, run

UNSTEADY = """
from pathlib import Path

def test_first_bad_then_good():
    seen = Path(__file__).with_suffix(".seen")
    is_second = seen.exists()
    seen.touch()
    assert is_second

def test_good(): pass
"""
BAD = "def test_bad(): assert False\n"


def test_every_test_belongs_to_a_suite():
    named = [ROOT / path for suite in SUITES for path in suite.paths]
    forgotten = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if not any(path in (file, *file.parents) for path in named)
    ]
    assert forgotten == [], "add them to a suite of tests/run_suites.py"


def outcome(folder, *texts, real):
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text)
    suite = Suite(
        name="x", paths=(str(folder),), budget_seconds=60, real=real, results=folder / "results"
    )
    return run(suite, seed=1)


def test_what_passes_only_at_the_second_try_is_named(tmp_path):
    told = outcome(tmp_path, UNSTEADY, real=True)
    assert (told.passed, told.failed) == (2, 0)
    assert [name.rpartition(".")[2] for name in told.unsteady] == ["test_first_bad_then_good"]
    assert told.note == "1 only at the second try"


@pytest.mark.parametrize("texts", [(BAD,), (UNSTEADY, BAD)])
def test_what_fails_twice_has_failed(tmp_path, texts):
    told = outcome(tmp_path, *texts, real=True)
    assert told.failed == len(texts)
    assert told.unsteady == ()


def test_where_nothing_is_real_there_is_no_second_try(tmp_path):
    assert outcome(tmp_path, UNSTEADY, real=False).failed == 1


def test_many_failures_are_no_trouble_of_a_moment(tmp_path):
    assert outcome(tmp_path, *[UNSTEADY] * 4, real=True).failed == 4
