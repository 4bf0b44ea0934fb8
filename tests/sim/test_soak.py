"""`make soak`: what it tells of seeds that nobody has seen before."""

import pytest

from tests.sim.seeds import Campaign
from tests.soak import soak

SIMULATOR = """
import sys
seed = int(sys.argv[sys.argv.index("--seed") + 1])
{body}
"""
GOOD = 'print("no violation in 7 schedules, 1 faults in 0.1 s")'
BAD = """
print("violation after 3 schedules")
print(f"again: python -m simulator --seed {seed + 2} --schedules 1")
sys.exit(1)
"""
BROKEN = "raise KeyError(seed)"


@pytest.fixture
def soaked(tmp_path, monkeypatch, capsys):
    """The status of a soak of this simulator, and what it printed."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def soaked(body):
        (tmp_path / "simulator.py").write_text(SIMULATOR.format(body=body))
        status = soak({"worlds": Campaign(module="simulator", each=1)}, 0.1, cores=2)
        return status, capsys.readouterr().out

    return soaked


def test_seeds_that_hold_are_counted(soaked):
    status, told = soaked(GOOD)
    assert status == 0
    assert "worlds: 7 from seed " in told
    assert told.endswith("no seed failed\n")


def test_a_seed_that_fails_is_told_with_the_command_that_shows_it_again(soaked):
    status, told = soaked(BAD)
    assert status == 1
    [first, *_] = [line for line in told.splitlines() if line.startswith("FAILED, again: ")]
    assert " -m simulator --seed " in first and first.endswith("--schedules 1")
    assert "tests/sim/seeds.py" in told


def test_a_simulator_that_breaks_is_a_failure_with_its_seed(soaked):
    status, told = soaked(BROKEN)
    assert status == 1
    assert "KeyError" in told
    assert "FAILED, again: .venv/bin/python -m simulator --seed " in told


def test_every_soak_plays_other_seeds(soaked):
    seeds = {line for _ in range(2) for line in soaked(GOOD)[1].splitlines() if "seed " in line}
    assert len(seeds) >= 4
