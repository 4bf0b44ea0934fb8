"""Runs every test suite, and closes with one table and with what was not tested.

A suite that needs more seconds than its budget is marked in the table; only CI_BUDGETS=1 makes
that a failure, for a machine may be slow or busy. One that needs several times its budget
hangs: the stacks of its tests are printed, and it is ended with everything it started. Results
lie in build/junit, where `make traceability` reads them.

Two suites run side by side: one with real parts, which mostly waits for them, and one that only
computes and yields to the other, unless a database keeps time there (docs/decisions/0040).
Where one kind is done, what is left of the other runs two at a time. What a suite printed is
shown as a whole when it has ended.

In CI (CI=true) every seed is fixed; by hand each run draws a fresh one, which is printed
(docs/decisions/0033). Where real processes, engines and browsers take part, a test that fails
is tried once more. If it passes then, it is unsteady: its name stands in the table, in the last
lines and in tests/UNSTEADY.md, and whoever reads that finds out why (docs/decisions/0032).
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # it is started as a file

from tests.sim.seeds import FIXED_SEED, FRESH, SEED_COUNT  # noqa: E402 - from there

RESULTS = ROOT / "build" / "junit"
UNSTEADY = ROOT / "tests" / "UNSTEADY.md"

# In the environment
IN_CI = "CI"
# What a suite does not inherit: the seed of somebody else, and that each process compiles anew
LEFT_OUT = frozenset({FRESH, "PYTHONDONTWRITEBYTECODE"})
BUDGETS_FAIL = "CI_BUDGETS"

# What every process of a suite and each copy with a planted bug would else compile for itself
COMPILED = ("src", "tests/kit", "tests/sim", "tests/support")

# So many times its budget a suite may take before it is ended.
HANGS_AT_BUDGETS = 5

# How long an interrupted suite may take to stop its servers before it is killed.
GRACE_SECONDS = 10
# How long its processes may take to print their stacks before that.
DUMP_SECONDS = 2
# pytest's exit statuses
TESTS_FAILED = 1
NO_TESTS_COLLECTED = 5
BAD = frozenset({"failure", "error"})  # in a report
SECOND_TRIES_MAX = 3  # more than that is no trouble of a moment
# A suite that only computes, beside one that waits for real parts
YIELDING = ("nice", "-n", "5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One row of the table below."""

    name: str
    paths: tuple[str, ...]
    budget_seconds: int
    workers: int = 2  # of pytest-xdist; 0: none
    yields: bool = False  # to the suite beside it: it only computes, and no time is told there
    real: bool = True  # processes, engines, browsers: not the same from one try to the next
    results: Path = RESULTS

    @property
    def report(self) -> Path:
        """Where pytest leaves the results."""
        return self.results / f"{self.name.replace(' ', '-')}.xml"

    @property
    def second_report(self) -> Path:
        """The same of what was tried again."""
        return self.report.with_suffix(".again.xml")

    @property
    def log(self) -> Path:
        """Where it prints while another suite runs."""
        return self.report.with_suffix(".log")

    @property
    def cache(self) -> Path:
        """What pytest remembers for the second try; the other suite remembers its own."""
        return ROOT / ".pytest_cache" / self.report.stem


# One pytest for each kind of surroundings: what its tests share, each worker starts once.
SUITES = (
    # The first of each kind run beside the first of the other: what mostly waits, for engines,
    # for Slurm, for processes to die, beside what only computes.
    Suite(name="containers", paths=("tests/containers",), budget_seconds=300, workers=3),
    Suite(name="real processes", paths=("tests/integration",), budget_seconds=300, workers=3),
    Suite(name="Slurm", paths=("tests/engines",), budget_seconds=180, workers=3),
    Suite(name="several machines", paths=("tests/machines",), budget_seconds=180),
    Suite(name="server", paths=("tests/server",), budget_seconds=180),
    Suite(name="documentation", paths=("tests/documentation",), budget_seconds=180),
    Suite(name="browser", paths=("tests/browser",), budget_seconds=240),
    # A command that hangs is told with its stack, within the budget. The longest one, so that
    # whoever has computed all takes it first.
    Suite(
        name="command line",
        paths=(
            "tests/command_line",
            "tests/stages",
            "tests/through_server",
            "tests/terminal",
            "tests/notifications",
        ),
        budget_seconds=360,
    ),
    Suite(
        name="simulation",
        paths=("tests/sim", "tests/planted"),
        budget_seconds=480,
        real=False,
        yields=True,
    ),
    Suite(
        name="unit and spec",
        paths=("tests/unit", "tests/tidy", "tests/spec"),
        budget_seconds=240,
        real=False,
        yields=True,
    ),
    Suite(
        name="conformance",
        paths=("tests/conformance",),
        budget_seconds=240,
        real=False,
    ),
    Suite(name="fuzz", paths=("tests/fuzz",), budget_seconds=240, real=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one suite ended."""

    suite: Suite
    passed: int = 0
    failed: int = 0
    skipped: tuple[str, ...] = ()  # why, for each test
    seconds: float = 0.0
    note: str = ""
    unsteady: tuple[Unsteady, ...] = ()  # passed, at the second try


@dataclass(frozen=True, slots=True)
class Unsteady:
    """A test that passed only at the second try, and what was wrong at the first."""

    name: str
    seen: str

    def row(self) -> str:
        """Its line in the file of all of them; the cause is for people to find."""
        day = time.strftime("%Y-%m-%d", time.gmtime())
        return f"| {day} | `{self.name}` | {self.seen.replace('|', '/')} | |"


def main() -> int:
    """Run the suites that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    parser.add_argument("suite", nargs="*", help=", ".join(suite.name for suite in SUITES))
    options = parser.parse_args()
    unknown = set(options.suite) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"no suite is called {', '.join(sorted(unknown))}")

    hear_interrupts()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in COMPILED:
        compileall.compile_dir(ROOT / folder, quiet=1)
    seed = choose_seed(options.seed)
    wanted = [suite for suite in SUITES if not options.suite or suite.name in options.suite]
    outcomes = Run(seed).all(wanted)
    print_table(outcomes, seed)
    keep_unsteady([one for outcome in outcomes for one in outcome.unsteady])
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def hear_interrupts() -> None:
    """Undo what `nohup make test &` does to us: tests send these signals, and mean them.

    A handler of ours is nobody's inheritance: every program that we start has the default.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def in_ci() -> bool:
    return os.environ.get(IN_CI, "") not in ("", "0", "false")


def choose_seed(asked: int | None) -> int | None:
    """The seed that is added to the fixed ones; none in CI, where nothing depends on luck."""
    if asked is not None or in_ci():
        return asked
    return random.randrange(SEED_COUNT)


@dataclass(slots=True, eq=False)
class Run:
    """Suites, in two lanes where there are both kinds of them: each begins with its own."""

    seed: int | None
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    interrupted: threading.Event = field(default_factory=threading.Event)
    printing: threading.Lock = field(default_factory=threading.Lock)

    def all(self, suites: list[Suite]) -> list[Outcome]:
        """Run them all: those with real parts beside those that only compute."""
        real, pure = (
            deque(one for one in suites if one.real == real) for real in (True, False)
        )
        if not (real and pure):
            return [self.one(suite) for suite in suites]
        lanes = (taken(real, pure), taken(pure, real))
        with ThreadPoolExecutor(len(lanes)) as threads:
            told = [threads.submit(self.lane, lane) for lane in lanes]
            try:
                outcomes = [outcome for lane in told for outcome in lane.result()]
            except KeyboardInterrupt:
                self.interrupted.set()
                for process in tuple(self.running):
                    end_group(process)
                raise
        return sorted(outcomes, key=lambda outcome: suites.index(outcome.suite))

    def lane(self, suites: Iterable[Suite]) -> list[Outcome]:
        """Run them one after the other, and show what each has printed at its end."""
        outcomes = []
        for suite in suites:
            if self.interrupted.is_set():
                break
            self.show(f"-- {suite.name} begins\n")
            with suite.log.open("w", encoding="utf-8") as log:
                outcomes.append(self.one(suite, log))
            self.show(suite.log.read_text(encoding="utf-8", errors="replace"))
        return outcomes

    def show(self, text: str) -> None:
        with self.printing:
            print(text, end="", flush=True)

    def one(self, suite: Suite, log: IO[str] | None = None) -> Outcome:
        """Run one to its end, or until it must be taken to hang.

        It prints to its log if another suite runs beside it.
        """
        for report in (suite.report, suite.second_report):
            report.unlink(missing_ok=True)  # an old result must not speak for this run
        if not existing(suite.paths):
            return Outcome(suite=suite, note="no tests yet")
        shown = "fixed seeds" if self.seed is None else f"seed {self.seed}"
        title = f"\n== {suite.name} (budget {suite.budget_seconds} s, {shown})"
        print(title, file=log, flush=True)
        started = time.monotonic()
        try:
            status, unsteady = self.tries(suite, log)
        except subprocess.TimeoutExpired:
            # The report, if there is one, counts the interrupted test as passed.
            suite.report.unlink(missing_ok=True)
            return Outcome(
                suite=suite,
                failed=1,
                seconds=time.monotonic() - started,
                note=f"ended after {HANGS_AT_BUDGETS} times its budget: its stacks are above",
            )
        seconds = time.monotonic() - started
        if status == NO_TESTS_COLLECTED:
            return Outcome(suite=suite, seconds=seconds, note="no tests yet")
        return outcome_of(suite, seconds, status, unsteady)

    def tries(self, suite: Suite, log: IO[str] | None) -> tuple[int, tuple[Unsteady, ...]]:
        """Run it, and once more what has failed in it if that may be trouble of a moment."""
        hangs_at = time.monotonic() + suite.budget_seconds * HANGS_AT_BUDGETS
        yields = YIELDING if log and suite.yields else ()
        status = self.pytest((*yields, *pytest_command(suite, self.seed)), log, hangs_at)
        failed = tests(suite.report, bad=True)
        if suite.real and status == TESTS_FAILED and 0 < len(failed) <= SECOND_TRIES_MAX:
            print(f"-- again, alone: {', '.join(failed)}", file=log, flush=True)
            again = self.pytest(second_command(suite, self.seed), log, hangs_at)
            if again == 0 and failed.keys() <= tests(suite.second_report, bad=False).keys():
                return 0, tuple(Unsteady(*one) for one in failed.items())
        return status, ()

    def pytest(self, command: tuple[str, ...], log: IO[str] | None, ends_at: float) -> int:
        """Its exit status; TimeoutExpired when it was ended, with everything it started."""
        fresh = {} if self.seed is None else {FRESH: str(self.seed)}
        inherited = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**inherited, **fresh},
            stdout=log,
            stderr=log and subprocess.STDOUT,
            start_new_session=True,  # a process group of its own, to be ended as a whole
        )
        self.running.add(process)
        try:
            return process.wait(timeout=max(0.0, ends_at - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            end_group(process)
            raise
        finally:
            self.running.discard(process)


def taken(own: deque[Suite], others: deque[Suite]) -> Iterator[Suite]:
    """One suite after the other as it is begun; whoever has none left takes others' last."""
    with contextlib.suppress(IndexError):  # nothing is left of either
        while True:
            yield own.popleft() if own else others.pop()


def pytest_command(suite: Suite, seed: int | None) -> tuple[str, ...]:
    """The command line of one suite."""
    parallel = ("-n", str(suite.workers), "--dist", "worksteal") if suite.workers else ()
    return (
        *common(suite, seed),
        *parallel,
        f"--junit-xml={suite.report}",
        *existing(suite.paths),
    )


def second_command(suite: Suite, seed: int | None) -> tuple[str, ...]:
    """The command line of what has failed in it, one test after the other."""
    again = ("-n", "0", "--last-failed", "--last-failed-no-failures", "none")
    return (
        *common(suite, seed),
        *again,
        f"--junit-xml={suite.second_report}",
        *existing(suite.paths),
    )


def common(suite: Suite, seed: int | None) -> tuple[str, ...]:
    """What both command lines begin with."""
    program = (sys.executable, "-m", "pytest", "-q")
    return (*program, "-o", f"cache_dir={suite.cache}", *seeded(seed))


def existing(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if (ROOT / path).exists()]


def seeded(seed: int | None) -> tuple[str, ...]:
    """Chance in the order of tests, in the tests and in hypothesis, all from one seed."""
    chosen = FIXED_SEED if seed is None else seed
    return (f"--randomly-seed={chosen}", f"--hypothesis-seed={chosen}")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Print stacks, interrupt the group, so that fixtures stop their servers; kill the rest."""
    for pid in listening(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)  # tests/conftest.py prints the stacks
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=DUMP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):  # nobody is left, as it should be
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def listening(group: int) -> list[int]:
    """The processes of a group that SIGUSR1 does not end: pytest and its workers."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        pid = int(status.parent.name)
        with contextlib.suppress(OSError):  # gone meanwhile
            caught = re.search(r"^SigCgt:\s*(\w+)$", status.read_text(), re.MULTILINE)
            hears = caught and int(caught[1], 16) >> (signal.SIGUSR1 - 1) & 1
            if hears and os.getpgid(pid) == group:
                found.append(pid)
    return found


def tests(report: Path, *, bad: bool) -> dict[str, str]:
    """Those that pytest reported as failed, or the others, with the first line about each."""
    return {
        f"{case.get('classname')}.{case.get('name')}": first_line(case)
        for case in cases(report)
        if bool(kinds(case) & BAD) == bad
    }


def cases(report: Path) -> list[ET.Element]:
    """Every test of a report."""
    return list(ET.parse(report).iter("testcase")) if report.exists() else []


def kinds(case: ET.Element) -> set[str]:
    """What is said of a test; nothing of one that passed."""
    return {child.tag for child in case} - {"properties", "system-out", "system-err"}


def first_line(case: ET.Element) -> str:
    """What was wrong, or why it was skipped."""
    messages = (child.get("message") for child in case if child.tag in kinds(case))
    return next((text.strip().partition("\n")[0] for text in messages if text), "")


def outcome_of(
    suite: Suite, seconds: float, status: int, unsteady: tuple[Unsteady, ...] = ()
) -> Outcome:
    """Count what pytest reported; a suite that ended badly has failed, reported or not."""
    told = [(kinds(case), first_line(case)) for case in cases(suite.report)]
    bad = 0 if unsteady else sum(bool(kind & BAD) for kind, _ in told)
    failed = max(bad, 1) if status else bad
    over = seconds > suite.budget_seconds
    fails = over and os.environ.get(BUDGETS_FAIL, "") not in ("", "0")
    notes = (
        f"pytest ended with {status}" if status else "",
        f"{len(unsteady)} only at the second try" if unsteady else "",
        "over its budget" if over else "",
    )
    return Outcome(
        suite=suite,
        passed=sum(not kind & (BAD | {"skipped"}) for kind, _ in told) + len(unsteady),
        failed=max(failed, 1) if fails else failed,
        skipped=tuple(why for kind, why in told if "skipped" in kind),
        seconds=seconds,
        note=", ".join(note for note in notes if note),
        unsteady=unsteady,
    )


def print_table(outcomes: list[Outcome], seed: int | None) -> None:
    """One row per suite, what was not tested, then the closing line that CI reads."""
    print(f"\n{'suite':<28}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}{'budget':>8}")
    for outcome in outcomes:
        print(
            f"{outcome.suite.name:<28}{outcome.passed:>8}{outcome.failed:>8}"
            f"{len(outcome.skipped):>9}{outcome.seconds:>9.1f}{outcome.suite.budget_seconds:>8}"
            f"  {outcome.note}".rstrip()
        )
    reasons = Counter(why for outcome in outcomes for why in outcome.skipped)
    for why, count in reasons.most_common():
        print(f"NOT TESTED, {count}: {why}")
    for outcome in outcomes:
        for one in outcome.unsteady:
            print(f"UNSTEADY, passed only at the second try: {one.name}")
    if seed is None:
        print("seeds: the fixed ones")
    else:
        print(f"random seed: {seed} (again: make test SEED={seed})")
    print(
        f"{sum(outcome.passed for outcome in outcomes)} passed, "
        f"{sum(outcome.failed for outcome in outcomes)} failed"
        + (f", {reasons.total()} skipped" if reasons else "")
    )


def keep_unsteady(found: list[Unsteady], file: Path = UNSTEADY) -> None:
    """Add them to the file of what is to be mended; CI, whose tree nobody keeps, says how."""
    rows = [one.row() for one in found]
    if rows and in_ci():
        print(f"add to {file.relative_to(ROOT)}, and find out why:", *rows, sep="\n")
    elif rows:
        with file.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{row}\n" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
