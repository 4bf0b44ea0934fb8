"""Every test is run, and what `make test` says about them is true."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from tests import run_suites
from tests.run_suites import ROOT, SUITES, Run, Suite, Unsteady
from tests.sim.seeds import FIXED_SEED
from tests.support.patience import allowed

UNSTEADY = """
from pathlib import Path

def test_first_bad_then_good():
    seen = Path(__file__).with_suffix(".seen")
    is_second = seen.exists()
    seen.touch()
    assert is_second, "it was the first"

def test_good(): pass
"""
BAD = "def test_bad(): assert False\n"
GOOD = "def test_good(): pass\n"
MEETS = """
from pathlib import Path
def test_meets():
    if "{0}" < "{1}":
        Path("{0}").write_text("here")
        assert Path("{1}").read_text() == "there"
    else:
        assert Path("{1}").read_text() == "here"
        Path("{0}").write_text("there")
"""
HANGS = "import threading\ndef test_hangs(): threading.Event().wait()\n"
REPORT = """<testsuites><testsuite>
<testcase classname="a" name="good"><properties/></testcase>
<testcase classname="a" name="not here"><skipped message="there is no bwrap"/></testcase>
<testcase classname="a" name="nor this"><skipped message="there is no bwrap"/></testcase>
<testcase classname="a" name="bad"><failure message="assert 1 == 2&#10;more"/></testcase>
</testsuite></testsuites>"""


def test_every_test_belongs_to_a_suite():
    named = [ROOT / path for suite in SUITES for path in suite.paths]
    forgotten = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if not any(path in (file, *file.parents) for path in named)
    ]
    assert forgotten == [], "add them to a suite of tests/run_suites.py"


# ---- what is said about a report ----


@pytest.fixture
def suite(tmp_path):
    """A suite that left a report."""
    suite = Suite(name="x", paths=(), budget_seconds=60, results=tmp_path)
    suite.report.write_text(REPORT)
    return suite


def test_a_suite_over_its_budget_is_only_marked(suite, monkeypatch):
    monkeypatch.delenv("CI_BUDGETS", raising=False)
    slow = run_suites.outcome_of(suite, 61.0, 1)
    assert (slow.passed, slow.failed) == (1, 1)
    assert slow.note == "pytest ended with 1, over its budget"


def test_a_budget_fails_a_suite_only_where_that_was_asked_for(suite, monkeypatch):
    suite.report.write_text(REPORT.replace("failure", "properties"))
    monkeypatch.setenv("CI_BUDGETS", "1")
    assert run_suites.outcome_of(suite, 61.0, 0).failed == 1
    assert run_suites.outcome_of(suite, 59.0, 0).failed == 0


def test_what_was_not_tested_is_told_with_its_reason(suite, capsys):
    run_suites.print_table([run_suites.outcome_of(suite, 1.0, 1)], None)
    told = capsys.readouterr().out.splitlines()
    assert "NOT TESTED, 2: there is no bwrap" in told
    assert told[-1] == "1 passed, 1 failed, 2 skipped"


def test_the_unsteady_are_kept_in_a_file_with_day_and_what_was_seen(suite, tmp_path, mode):
    mode()
    file = tmp_path / "UNSTEADY.md"
    failed = run_suites.tests(suite.report, bad=True)
    run_suites.keep_unsteady([Unsteady(*one) for one in failed.items()], file)
    assert file.read_text().endswith(" | `a.bad` | assert 1 == 2 | |\n")


def test_ci_says_which_lines_belong_there(mode, capsys):
    mode(CI="true")
    run_suites.keep_unsteady([Unsteady("a.b", "x | y")])
    told = capsys.readouterr().out
    assert "add to tests/UNSTEADY.md" in told
    assert " | `a.b` | x / y | |" in told


# ---- seeds ----


@pytest.fixture
def mode(monkeypatch):
    """By hand, or in CI."""

    def mode(**environment):
        for name in ("CI", "SIM_SEED"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return mode


def test_in_ci_no_seed_is_fresh(mode):
    mode(CI="true")
    assert run_suites.choose_seed(None) is None
    assert f"--randomly-seed={FIXED_SEED}" in run_suites.seeded(None)


def test_by_hand_each_run_has_a_seed_of_its_own_unless_one_is_given(mode):
    mode()
    assert run_suites.choose_seed(None) != run_suites.choose_seed(None)
    assert run_suites.choose_seed(7) == 7


SHOWS_SEEDS = """
import os
from tests.sim.seeds import CAMPAIGNS
def test_seeds(pytestconfig):
    begins = CAMPAIGNS["queue"].begins()
    assert begins == {begins}, begins
    assert pytestconfig.getoption("randomly_seed") == {seed}
    assert pytestconfig.getoption("hypothesis_seed") == "{seed}"
"""


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [None, 77])
def test_campaigns_play_the_fixed_seeds_and_the_fresh_one(mode, tmp_path, seed):
    mode(SIM_SEED="5")  # of somebody else
    begins = [1, 61, 121, 181, *([] if seed is None else [seed])]
    text = SHOWS_SEEDS.format(begins=begins, seed=FIXED_SEED if seed is None else seed)
    told = outcome(tmp_path, text, real=False, seed=seed)
    assert (told.passed, told.failed) == (1, 0)


# ---- whole runs of pytest ----


SHARED = "from tests.conftest import pytest_configure"


def made(folder, *texts, real, **options):
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(SHARED)
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text)
    results = folder / "results"
    results.mkdir()
    suite = Suite(name="x", paths=(str(folder),), budget_seconds=60, real=real, results=results)
    return replace(suite, **options)


def outcome(folder, *texts, real, seed=1, **options):
    return Run(seed).one(made(folder, *texts, real=real, **options))


@pytest.mark.slow
def test_two_suites_run_side_by_side_to_the_end_and_are_told_one_after_the_other(
    tmp_path, capfd
):
    """Each waits for another: one of each kind first, then the two that are left of one kind;
    none could pass alone."""
    suites = []
    for names in (("pure", "real"), ("third", "last")):
        ends = [tmp_path / f"end of {name}" for name in names]
        for name, own, other in zip(names, ends, reversed(ends), strict=True):
            os.mkfifo(own)
            text = MEETS.format(own, other)
            real = name != "pure"
            suites.append(made(tmp_path / name, text, real=real, name=name, workers=0))
    told = Run(1).all(suites)
    assert [(one.suite.name, one.passed, one.failed) for one in told] == [
        (suite.name, 1, 0) for suite in suites
    ]
    printed = capfd.readouterr().out
    for suite in suites:
        shown = printed.partition(f"== {suite.name} (budget")[2]
        assert "1 passed" in shown.partition("==")[0]


@pytest.mark.nightly
def test_what_passes_only_at_the_second_try_is_named(tmp_path):
    told = outcome(tmp_path, UNSTEADY, real=True)
    assert (told.passed, told.failed) == (2, 0)
    [one] = told.unsteady
    assert one.name.endswith(".test_first_bad_then_good")
    assert "it was the first" in one.seen
    assert told.note == "1 only at the second try"


@pytest.mark.nightly
@pytest.mark.parametrize("texts", [(BAD,), (UNSTEADY, BAD)])
def test_what_fails_twice_has_failed(tmp_path, texts):
    told = outcome(tmp_path, *texts, real=True)
    assert told.failed == len(texts)
    assert told.unsteady == ()


@pytest.mark.nightly
def test_where_nothing_is_real_there_is_no_second_try(tmp_path):
    assert outcome(tmp_path, UNSTEADY, real=False).failed == 1


@pytest.mark.nightly
def test_many_failures_are_no_trouble_of_a_moment(tmp_path):
    assert outcome(tmp_path, *[UNSTEADY] * 4, real=True).failed == 4


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [0, 2])
def test_a_suite_that_hangs_is_ended_and_shows_where(tmp_path, workers, capfd):
    budget = round(allowed(1.5))
    told = outcome(tmp_path, HANGS, real=False, budget_seconds=budget, workers=workers)
    assert told.failed == 1
    assert "5 times its budget" in told.note
    assert 'test_0.py", line 2 in test_hangs' in capfd.readouterr().err


HEARS = """
import signal, subprocess, sys
LOOK = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
def test_a_program_hears_an_interrupt():
    assert subprocess.check_output([sys.executable, "-c", LOOK], text=True) == "True\\n"
"""


@pytest.mark.nightly
@pytest.mark.parametrize("workers", ["0", "1"])
def test_started_in_the_background_tests_still_hear_interrupts(tmp_path, workers):
    (tmp_path / "conftest.py").write_text(SHARED)
    (tmp_path / "test_0.py").write_text(HEARS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTEST_ADDOPTS": "-p no:cacheprovider"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as `command &` does
    )
    assert done.returncode == 0, done.stdout
