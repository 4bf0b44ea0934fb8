"""Every test is run: a file that no suite names would never fail again."""

from tests.run_suites import ROOT, SUITES


def test_every_test_belongs_to_a_suite():
    named = [ROOT / path for suite in SUITES for path in suite.paths]
    forgotten = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if not any(path in (file, *file.parents) for path in named)
    ]
    assert forgotten == [], "add them to a suite of tests/run_suites.py"
