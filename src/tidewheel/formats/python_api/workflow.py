"""Lets a person define a workflow in Python, and finds the workflow that a file defines.

To find it, the file is executed, which is as safe as the file is: only for definitions that
their user trusts like any script.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Unpack, overload

from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Finding, Findings, InvalidDefinition, Position
from tidewheel.core.graph.graph import Graph
from tidewheel.formats.flow_cylc.settings import (
    FlowSettings,
    Placed,
    SchedulerSection,
    SchedulingSettings,
)
from tidewheel.formats.flow_cylc.values import BadValue
from tidewheel.formats.flow_cylc.xtriggers import Argument, XtriggerCall
from tidewheel.formats.python_api.assembly import INTEGER, ReadOptions, assemble, check_idle
from tidewheel.formats.python_api.declarations import (
    Declarations,
    Family,
    FunctionTask,
    MappedTask,
    P,
    R,
    Task,
    Xtrigger,
)
from tidewheel.formats.python_api.flow_text import checked_text, flow_text
from tidewheel.formats.python_api.function_jobs import run_job, sent_arguments
from tidewheel.formats.python_api.functions import task_of
from tidewheel.formats.python_api.settings import Duration, Settings, read_duration
from tidewheel.formats.python_api.terms import (
    BadStatement,
    Cycle,
    Statement,
    StatementLog,
    TaskFunction,
    Term,
    all_of,
    written_at,
)
from tidewheel.lazy_dataclasses import NamedTuple

Families = Family | Iterable[Family]


class Compiled(NamedTuple):
    """Holds a graph without errors, and the warnings and notes about it."""

    graph: Graph
    findings: list[Finding]


class Workflow:
    """Collects the tasks and statements of a workflow; `compile` makes a graph of them.

        from tidewheel import Workflow

        flow = Workflow("forecast", initial=1, final=3)
        fetch = flow.task("fetch", script="get-data", retries=["1m", "5m"], timeout="1h")
        model = flow.task("model", script="run-model")
        with flow.cycle("P1"):
            (fetch & model[-1]) >> model

    Write statements with ``>>`` inside ``with flow.cycle(…):``. A statement becomes part of the
    workflow when Python executes it.
    """

    def __init__(  # noqa: PLR0913 - each is named where it is given
        self,
        name: str,
        *,
        cycling: str = INTEGER,
        initial: int | str | None = None,
        final: int | str | None = None,
        stop: int | str | None = None,
        hold_after: int | str | None = None,
        runahead: str | None = None,
        time_zone: str | None = None,
        point_format: str | None = None,
        expanded_year_digits: int = 0,
    ) -> None:
        self.name = name
        position = written_at()

        def placed(given: int | str | None) -> Placed:
            return Placed() if given is None else Placed(str(given), position)

        self._settings = FlowSettings(
            scheduler=SchedulerSection(
                point_format=placed(point_format),
                expanded_year_digits=expanded_year_digits,
                time_zone=placed(time_zone),
            ),
            scheduling=SchedulingSettings(
                initial_point=placed(initial),
                final_point=placed(final),
                hold_after=placed(hold_after),
                stop_after=placed(stop),
                cycling_mode=placed(cycling),
                runahead_limit=placed(runahead),
            ),
        )
        self._file = position.file
        folder = Path(position.file).absolute().parent
        self._ledger = StatementLog(name, is_integer=cycling == INTEGER, folder=folder)
        self._declared = Declarations(self._ledger.findings)

    @overload
    def task(
        self, name: str, *, family: Families = (), **settings: Unpack[Settings]
    ) -> Task: ...

    @overload
    def task(self, name: Callable[P, R]) -> FunctionTask[P, R]: ...

    @overload
    def task(
        self, *, family: Families = (), **settings: Unpack[Settings]
    ) -> Callable[[Callable[P, R]], FunctionTask[P, R]]: ...

    def task(
        self,
        name: str | Callable[P, R] | None = None,
        *,
        family: Families = (),
        **settings: Unpack[Settings],
    ) -> Task | Callable[[Callable[P, R]], FunctionTask[P, R]]:
        """Declares a task: `flow.task("obs", script="get-obs")`, or by `@flow.task`.

        `@flow.task` above a function declares a task that calls the function;
        `@flow.task(retries=3)` also gives the task settings. The table below lists all
        settings. A value that cannot be read is reported by `findings` and `tidewheel
        validate`. An unknown setting raises BadStatement.
        """

        def declare(name: str) -> Task:
            task = Task(self._ledger, name)
            self._declared.add(task, _listed(family), settings)
            return task

        def decorate(function: Callable[P, R]) -> FunctionTask[P, R]:
            return declare(getattr(function, "__name__", ""))(function)

        if name is None:
            return decorate
        return declare(name) if isinstance(name, str) else decorate(name)

    def family(
        self, name: str, *, family: Families = (), **settings: Unpack[Settings]
    ) -> Family:
        """Declares a family: its tasks inherit the settings, and one name stands for them."""
        made = Family(self._ledger, name)
        self._declared.add(made, _listed(family), settings)
        return made

    def defaults(self, **settings: Unpack[Settings]) -> None:
        """Sets settings for every task that does not set them itself."""
        self._declared.add_defaults(settings)

    def xtrigger(
        self,
        label: str,
        function: str,
        /,
        *arguments: Argument,
        interval: Duration = "PT10S",
        **keywords: Argument,
    ) -> Xtrigger:
        """Declares an xtrigger: a function that is called every `interval` until it is
        satisfied. In a statement `xtrigger >> task` the task waits for it."""
        position = written_at()
        try:
            seconds = read_duration(interval)
        except BadValue as bad:
            raise BadStatement(f"xtrigger {label!r}: interval: {bad}", bad.hint) from None
        call = XtriggerCall(function, arguments, tuple(keywords.items()), seconds)
        self._declared.add_xtrigger(label, call, position)
        return Xtrigger(self._ledger, label)

    def limit(
        self, name: str, limit: int, members: Iterable[Task | Family | MappedTask[Any]] = ()
    ) -> None:
        """Limits how many members may be active at once; 0 means no limit. The limit with the
        name "default" is for all tasks that are in no other limit."""
        self._declared.add_limit(name, limit, members)

    def cycle(self, recurrence: str) -> Cycle:
        """Opens a cycle: `with flow.cycle("P1"):`. Every recurrence that flow.cylc has is
        accepted."""
        return Cycle(self._ledger, recurrence)

    def place(self, *terms: Term) -> None:
        """Says that tasks run at the points of this cycle, even if no arrow leads to them."""
        Statement.beginning(all_of(*terms)).place()

    @property
    def folder(self) -> Path:
        """Returns the folder of the file that made the workflow."""
        return self._ledger.folder

    def function(self, task: str) -> TaskFunction | None:
        """Returns the function that a task calls, or None if it has none."""
        return self._ledger.functions.get(task)

    def arguments(
        self, node: str, variables: Mapping[str, str], inputs: Mapping[str, object]
    ) -> dict[str, object]:
        """Returns the arguments that a job of a node is sent by other tasks, as JSON."""
        return sent_arguments(self._ledger, task_of(self._ledger, node), variables, inputs)

    def run_job(self, task: str) -> None:
        """Does the work of a job of a task: calls its function with the values it is given."""
        run_job(self._ledger, task)

    def definition(self, options: ReadOptions | None = None) -> WorkflowDef:
        """Returns the definition as an object; raises InvalidDefinition with all mistakes."""
        findings = Findings()
        self._say_collected(findings)
        definition = self._read(options, findings)
        if definition is None or findings.has_errors:
            raise InvalidDefinition(self.name, findings.sorted())
        return definition

    def compile(self, options: ReadOptions | None = None) -> Compiled:
        """Returns the graph that a scheduler runs; raises InvalidDefinition for errors."""
        findings = Findings()
        loaded = self.load(options, findings)
        if loaded is None or findings.has_errors:
            raise InvalidDefinition(self.name, findings.sorted())
        return Compiled(loaded[1], findings.sorted())

    def flow_text(self, options: ReadOptions | None = None) -> str:
        """Returns the workflow as the text of a flow.cylc, which a server can keep and run.

        Raises InvalidDefinition if the workflow has errors, or has something that cannot be
        written in a flow.cylc.
        """
        options = options or _now()
        definition = self.definition(options)
        text = flow_text(self._ledger, self._declared, self._settings, self._file)
        return checked_text(text, definition, options, self._ledger.folder)

    def findings(self, options: ReadOptions | None = None) -> list[Finding]:
        """Returns all errors, warnings and notes about the workflow, errors first."""
        findings = Findings()
        self.load(options, findings)
        return findings.sorted()

    def load(
        self, options: ReadOptions | None, findings: Findings
    ) -> tuple[WorkflowDef, Graph] | None:
        """Returns the definition and its graph, as far as understood, and adds the findings.

        Returns None if the workflow has no usable points.
        """
        self._say_collected(findings)
        definition = self._read(options, findings)
        if definition is None:
            return None
        graph = compile_workflow(definition, findings)
        check_workflow(definition, graph, findings)
        check_idle(definition, graph, findings)
        return definition, graph

    def _say_collected(self, findings: Findings) -> None:
        """Adds the findings that statements caused when they were made."""
        for finding in self._ledger.findings:
            findings.add(finding)

    def _read(self, options: ReadOptions | None, findings: Findings) -> WorkflowDef | None:
        options = options or _now()
        return assemble(self._ledger, self._declared, self._settings, options, findings)


def _now() -> ReadOptions:
    # The author of a workflow in a script has no other clock at hand.
    return ReadOptions(now=time.time())  # noqa: TID251


def _listed(families: object) -> tuple[object, ...]:
    if isinstance(families, Iterable) and not isinstance(families, str):
        return tuple(families)
    return (families,)


# Finds the workflow that a Python file defines, by executing the file.

CALLS_MAX = 10  # of a traceback that are told
SAID_LENGTH_MAX = 2_000
# Where code lies that only executes theirs.
_NOT_THEIRS = (f"{Path(__file__).parents[2]}{os.sep}", str(runpy.__file__))
LOADED = "__tidewheel__"  # so that `if __name__ == "__main__":` is passed over


def load_python(path: Path, findings: Findings) -> Workflow | None:
    """Returns the one workflow of a file; None after a finding that says why there is none."""
    try:
        # What it prints is for people; the answer of a command may be for programs.
        with redirect_stdout(sys.stderr):
            workflows = workflows_in(str(path))
    except BadStatement as bad:
        findings.error("bad-statement", bad.message, bad.hint, bad.position)
        return None
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}"
        more = "…" if len(said) > SAID_LENGTH_MAX else ""
        seen = f"the file could not be executed: {said[:SAID_LENGTH_MAX]}{more}"
        hint = (
            _hint_of_words(error)
            or _calls_of(error)
            or "run it with python3 to see where this comes from"
        )
        findings.error("python-error", seen, hint, _place_of(error, path))
        return None
    if len(workflows) != 1:
        names = ", ".join(one.name for one in workflows)
        message = (
            f"the file defines several workflows: {names}"
            if workflows
            else "the file defines no workflow"
        )
        advice = "define exactly one workflow at the top level: flow = Workflow(…)"
        findings.error("no-workflow", message, advice, Position(str(path)))
        return None
    return workflows[0]


def _hint_of_words(error: BaseException) -> str:
    """Returns which words a workflow takes, if it was given another one; else ""."""
    if not isinstance(error, TypeError) or not str(error).startswith("Workflow.__init__()"):
        return ""
    words = ", ".join(f"{one}=" for one in list(signature(Workflow).parameters)[1:])
    return (
        f"Workflow takes a name, {words}; to say when tasks run, define them under "
        '"with flow.cycle(…):", or give a task wait_for_clock='
    )


def workflows_in(home: str) -> list[Workflow]:
    """Returns the workflows to which names of a module or of a `.py` file refer, each once."""
    if home.endswith(".py"):
        # For the modules beside it, also for imports when a function runs.
        if (folder := str(Path(home).absolute().parent)) not in sys.path:
            sys.path.insert(0, folder)
        names = runpy.run_path(home, run_name=LOADED)
        # Annotations that are texts are looked up in the module of their class.
        module = sys.modules[LOADED] = ModuleType(LOADED)
        vars(module).update(names)
    else:
        names = vars(importlib.import_module(home))
    found = [value for value in names.values() if isinstance(value, Workflow)]
    return list({id(one): one for one in found}.values())


def _calls_of(error: BaseException) -> str:
    """Returns the last calls of the author's own code that led to an error, in their order."""
    frames = [
        f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", *_NOT_THEIRS))
    ]
    return " → ".join(frames[-CALLS_MAX:])


def _place_of(error: BaseException, path: Path) -> Position:
    if isinstance(error, SyntaxError) and error.filename:
        return Position(error.filename, error.lineno or 0)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return Position(str(path), lines[-1] or 0 if lines else 0)
