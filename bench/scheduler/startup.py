"""P5: from the start of the command to its exit, for one task."""

from __future__ import annotations

import shutil

from bench.scheduler import cylc_side, shapes
from bench.scheduler.bounded import Failed, Ran
from bench.scheduler.measuring import Bench, measured_or_listed
from bench.scheduler.report import Section, times
from bench.scheduler.tidewheel_side import SIMULATED

CYLC_STARTS = 2


def startup(bench: Bench) -> Section:
    section = Section(
        title="P5: start to exit of the command",
        header=("command", "best seconds", "CPU seconds", "ratio"),
    )
    tidewheel, starts = bench.tidewheel, bench.sizes.starts
    flow = str(tidewheel.write_flow(shapes.alone()))
    live = _best([tidewheel.command("run", flow) for _ in range(starts)])
    played = _best([tidewheel.command("run", flow, *SIMULATED) for _ in range(starts)])
    version = _best([tidewheel.command("--version") for _ in range(2 * starts)])
    _add(section, "`tidewheel run`, one task", live, live)
    _add(section, "`tidewheel run --mode simulation`", played, played)
    _add(section, "`tidewheel --version`", version, version)
    section.judge("start run", live.seconds)
    section.judge("start version", version.seconds)
    section.judge("start runs", _runs(bench))
    with measured_or_listed(section, "cylc-flow"):
        _add(section, "`cylc play --no-detach`, one task", _cylc(bench), live)
        simulated = _cylc(bench, *cylc_side.SIMULATED)
        _add(section, "`cylc play --no-detach --mode=simulation`", simulated, played)
    return section


def _runs(bench: Bench) -> float:
    home = bench.folder / "many-runs"
    shutil.rmtree(home, ignore_errors=True)
    return float(bench.child("many_runs", home, bench.sizes.runs))


def _cylc(bench: Bench, *options: str) -> Ran:
    shape, bound = shapes.alone(), bench.sizes.cylc_seconds_max
    starts = min(CYLC_STARTS, bench.sizes.starts)
    return _best(
        [bench.cylc.start_to_exit(shape, *options, seconds_max=bound) for _ in range(starts)]
    )


def _best(ran: list[Ran]) -> Ran:
    if not all(one.is_complete for one in ran):
        raise Failed("the command did not end")
    return min(ran, key=lambda one: one.seconds)


def _add(section: Section, command: str, ran: Ran, beside: Ran) -> None:
    ratio = "1" if ran is beside else times(ran.seconds / beside.seconds)
    section.rows.append([command, f"{ran.seconds:.3f}", f"{ran.cpu_seconds:.2f}", ratio])
