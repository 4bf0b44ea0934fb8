"""``python -m bench.heartbeats``: 500 workers × 10 leases, CPU and spurious lapses."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from bench.environments import CannotInstall, ensure_python_peer
from bench.folders import REPOSITORY, data_folder
from bench.goals import Verdict, judged
from bench.heartbeats.load import LoadSettings
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from bench.postgres import PostgresServer

TIDEWHEEL = "bench.heartbeats.tidewheel_store"
SERVER = "bench.heartbeats.server_store"
STORES = {
    "tidewheel-server": SERVER,  # on PostgreSQL: what P11 is about
    "tidewheel-postgres": TIDEWHEEL,
    "tidewheel-sqlite": TIDEWHEEL,
    "raw-postgres": "bench.heartbeats.raw_postgres_store",
}
OVERHEAD_SECONDS_MAX = 120.0
HEADER = (
    "store",
    "beats",
    "CPU s",
    "PostgreSQL CPU s",
    "cores",
    "slowest beat ms",
    "spurious lapses",
)


def main() -> None:
    wish = _arguments()
    settings = LoadSettings(workers=wish.workers, leases=wish.leases, seconds=wish.seconds)
    rows, failures, verdicts = [], [], []
    with data_folder() as folder:
        facts = machine_facts(folder)
        with PostgresServer(folder) as server:
            for name in wish.only:
                try:
                    report = _measure(name, server, folder, settings)
                    rows.append(_row(name, report))
                    if name == "tidewheel-server":
                        verdicts.append(Verdict("heartbeats", _cores(report)))
                        verdicts.append(Verdict("lapses", _spurious(report)))
                except (CannotInstall, subprocess.SubprocessError) as error:
                    failures.append(f"- {name}: not measured: {_reason(error)}")
    load = f"{settings.workers} workers × {settings.leases} leases, {settings.seconds:g} s"
    figures = table(HEADER, rows) if rows else ""
    told = (load, figures, judged(verdicts), "\n".join(failures))
    publish(wish.write, "heartbeats", facts_text(facts), *told)


def _measure(
    name: str, server: PostgresServer, folder: Path, settings: LoadSettings
) -> dict[str, float]:
    ours = STORES[name] in (TIDEWHEEL, SERVER)
    interpreter = Path(sys.executable) if ours else ensure_python_peer()
    answer = folder / f"{name}.json"
    command = [str(interpreter), "-m", "bench.heartbeats.drive", STORES[name]]
    url = f"sqlite:///{folder}/heartbeats.db"
    if name != "tidewheel-sqlite":
        url = server.address.fresh_database(f"heartbeats_{name.replace('-', '_')}")
    values = [url, str(server.pid), json.dumps(asdict(settings)), str(answer)]
    subprocess.run(
        [*command, *values],
        check=True,
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        timeout=settings.seconds + OVERHEAD_SECONDS_MAX,
    )
    report: dict[str, float] = json.loads(answer.read_text())
    return report


def _row(name: str, report: dict[str, float]) -> list[str]:
    own, server = report["cpu_seconds"], report["server_cpu_seconds"]
    return [
        name,
        f"{report['beats']:,.0f}",
        f"{own:.1f}",
        f"{server:.1f}",
        f"{_cores(report):.2f}",
        f"{report['beat_seconds_max'] * 1000:.0f}",
        str(_spurious(report)),
    ]


def _cores(report: dict[str, float]) -> float:
    return (report["cpu_seconds"] + report["server_cpu_seconds"]) / report["seconds"]


def _spurious(report: dict[str, float]) -> int:
    return int(report["lapsed"] + report["lost"])


def _reason(error: Exception) -> str:
    stderr = getattr(error, "stderr", None) or b""
    lines = stderr.decode().strip().splitlines()
    return lines[-1] if lines else str(error)


def _arguments() -> argparse.Namespace:
    defaults = LoadSettings()
    parser = argparse.ArgumentParser(prog="python -m bench.heartbeats", description=__doc__)
    parser.add_argument("--workers", type=int, default=defaults.workers)
    parser.add_argument("--leases", type=int, default=defaults.leases)
    parser.add_argument("--seconds", type=float, default=defaults.seconds)
    parser.add_argument("--only", nargs="+", choices=sorted(STORES), default=list(STORES))
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
