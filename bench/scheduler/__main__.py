"""``python -m bench.scheduler``: workflows run by tidewheel and by its peers, in one run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from bench.folders import data_folder
from bench.machine import machine_facts
from bench.markdown import publish
from bench.scheduler import core, growth, live, simulated, startup
from bench.scheduler.measuring import QUICK, SHORT, Bench, Sizes, measured_or_listed
from bench.scheduler.report import Section, render
from bench.scheduler.tidewheel_side import Tidewheel

PARTS: dict[str, Callable[[Bench], Section]] = {
    "cycles": simulated.cycles,
    "chain": simulated.chain,
    "fan": simulated.fan,
    "live": live.live,
    "startup": startup.startup,
    "core": core.core,
    "growth": growth.growth,
    "restart": growth.restart,
}
QUICK_REMARK = "**Small sizes, to see that the bench works; the goals are not judged by them.**"
PROFILE_REMARK = "**tidewheel ran under a profiler: its figures are of no use here.**"


def main() -> None:
    wish = _arguments()
    profile = ""
    if wish.profile:
        profile = str(wish.profile.resolve())
        wish.profile.write_text("")
    with data_folder() as folder:
        facts = machine_facts(folder)
        bench = Bench(
            folder=folder,
            sizes=QUICK if wish.quick else SHORT if wish.short else Sizes(),
            with_cylc=not wish.no_cylc,
            tidewheel=Tidewheel(folder, profile),
            versions={"tidewheel": version("tidewheel")},
        )
        sections = [_part(bench, name) for name in wish.only or PARTS]
    remarks = [QUICK_REMARK] * wish.quick + [PROFILE_REMARK] * bool(profile)
    text = render(sections, facts, bench.versions, remarks)
    publish(wish.write, "scheduler", text)


def _part(bench: Bench, name: str) -> Section:
    section = Section(title=f"{name}: not measured", header=())
    with measured_or_listed(section, name):
        section = PARTS[name](bench)
    return section


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scheduler", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], choices=list(PARTS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see it work")
    parser.add_argument("--short", action="store_true", help="little of Cylc, one round")
    parser.add_argument("--no-cylc", action="store_true", help="nothing of Cylc")
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="where tidewheel's time goes, as text"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
