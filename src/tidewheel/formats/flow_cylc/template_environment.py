"""Provides Jinja2 as a flow.cylc knows it: its filters, its files and its own Python code.

The sandbox is not the immutable one: `{% do list.append(x) %}` is everyday Cylc, and what a
template changes dies with the process that renders it.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, cast

from jinja2 import BaseLoader, Environment, StrictUndefined, Template, TemplateNotFound, nodes

from tidewheel.core.graph.findings import NOWHERE
from tidewheel.formats.flow_cylc.source_text import BadSource, SourceFolder
from tidewheel.formats.flow_cylc.template_variables import ALL_VARIABLES
from tidewheel.formats.traced_environment import TracedEnvironment

# Functions that a template may call besides Jinja2's own filters and tests.

_UNIT_SECONDS = {
    **dict.fromkeys(("s", "seconds"), 1.0),
    **dict.fromkeys(("m", "minutes"), 60.0),
    **dict.fromkeys(("h", "hours"), 3600.0),
    **dict.fromkeys(("d", "days"), 86400.0),
    **dict.fromkeys(("w", "weeks"), 604800.0),
}


class TemplateRaised(Exception):
    """The template itself said that something is wrong."""


def pad(value: object, length: int | str, fillchar: str = " ") -> str:
    return str(value).rjust(int(length), str(fillchar))


def duration_as(duration: str, units: str) -> float:
    """Returns a duration in a unit: `'PT1H' | duration_as('m')` is 60.0."""
    from metomi.isodatetime.parsers import DurationParser  # noqa: PLC0415 - slow, seldom used

    seconds = _UNIT_SECONDS.get(units.lower())
    if seconds is None:
        raise ValueError(f"no unit {units!r}; expected one of {', '.join(_UNIT_SECONDS)}")
    parser: Any = DurationParser()  # metomi's functions have no types
    return float(parser.parse(duration).get_seconds()) / seconds


def strftime(date: str, form: str, written: str | None = None) -> str:
    """Returns a date in another format: `'20300101T00Z' | strftime('%Y')` is `2030`.

    ``written`` is the format of an unusual date.
    """
    from metomi.isodatetime.parsers import TimePointParser  # noqa: PLC0415 - slow, seldom used

    parser: Any = cast("Any", TimePointParser)()
    point = parser.strptime(date, written) if written else parser.parse(date)
    return str(point.strftime(form))


def raise_(message: object) -> str:
    raise TemplateRaised(str(message))


def assert_(holds: object, message: object) -> str:
    if not holds:
        raise TemplateRaised(str(message))
    return ""


FILTERS: dict[str, Callable[..., object]] = {
    "pad": pad,
    "duration_as": duration_as,
    "strftime": strftime,
}
FUNCTIONS: dict[str, Callable[..., object]] = {"raise": raise_, "assert": assert_}


# The environment.

_PYTHON_PREFIX = "__python__."
_SET = re.compile(r"\{%[-+]?\s*set\s+(\w+)")  # what a template itself gives a value
_UNDEFINED = re.compile(r"'(\w+)' is undefined")


class FolderLoader(BaseLoader):
    """Loads what templates include and import: files and, if trusted, Python modules."""

    def __init__(self, folder: str, code_trusted: bool) -> None:
        self.folder = SourceFolder(Path(folder))
        self._code_trusted = code_trusted
        self.refused: BadSource | None = None

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        del environment
        try:
            lines = self.folder.read_lines(template, NOWHERE)
        except BadSource as error:
            self.refused = error
            raise TemplateNotFound(template) from None
        return "\n".join(lines) + "\n", template, None

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,
    ) -> Template:
        try:
            return super().load(environment, name, globals)
        except TemplateNotFound:
            module = self._module(name.removeprefix(_PYTHON_PREFIX))
            if module is None:
                raise
        empty = environment.from_string("")

        def export(context: Any, *_: object) -> Iterator[str]:  # noqa: ANN401 - Jinja2's context
            context.vars.update(module)
            context.exported_vars.update(module)
            return iter(())

        empty.root_render_func = export
        return empty

    def _module(self, name: str) -> dict[str, object] | None:
        if not self._code_trusted:
            return None
        try:
            return vars(importlib.import_module(name))
        except (ImportError, ValueError, TypeError):
            return None


class FlowEnvironment(TracedEnvironment):
    """Renders flow.cylc templates; a name without a value is an error, as in Cylc."""

    def __init__(self, folder: str, code_trusted: bool) -> None:
        self._folder = Path(folder)
        self._code_trusted = code_trusted
        self._folder_loader = FolderLoader(folder, code_trusted)
        self.names: set[str] = set()  # that templates look up
        super().__init__(
            loader=self._folder_loader, undefined=StrictUndefined, extensions=["jinja2.ext.do"]
        )
        self.filters.update(FILTERS)
        self.globals.update(FUNCTIONS)
        self.globals["environ"] = dict(os.environ) if code_trusted else {}
        if code_trusted:
            for name, value in os.environ.items():
                # The other two describe a Cylc installation.
                if name.startswith("CYLC_") and name not in ("CYLC_VERSION", "CYLC_ENV_NAME"):
                    self.globals[name] = value

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        self.names |= {one.name for one in tree.find_all(nodes.Name) if one.ctx == "load"}
        return tree

    def prepare(self, text: str) -> None:
        """Loads the folder's own code: `Jinja2Filters/name.py` defines the filter `name`."""
        del text
        if not self._code_trusted:
            return
        library = self._folder / "lib" / "python"
        if library.is_dir():
            sys.path.append(str(library))
        for kind, table in (
            ("Filters", self.filters),
            ("Tests", self.tests),
            ("Globals", self.globals),
        ):
            place = self._folder / f"Jinja2{kind}"
            if not place.is_dir():
                continue
            sys.path.insert(1, str(place))
            for file in sorted(place.glob("*.py")):
                # Refuses code outside the folder: it is read from there only, like other files.
                self._folder_loader.folder.resolve(f"Jinja2{kind}/{file.name}", NOWHERE)
                module = importlib.import_module(file.stem)
                table[file.stem] = getattr(module, file.stem)

    def told(self) -> dict[str, object]:
        return {"files": self.files, "names": sorted(self.names)}

    def other_failure(self, error: Exception, text: str, line: int) -> tuple[str, str, str]:
        del text, line
        refused = self._folder_loader.refused
        if isinstance(error, TemplateNotFound) and refused is not None:
            return refused.finding_code, str(refused), refused.hint
        if isinstance(error, TemplateRaised):
            return "template-raised", str(error), ""
        return "template-failed", f"{type(error).__name__}: {error}", ""

    def advice(self, message: str, text: str, line: int, variables: dict[str, object]) -> str:
        del line
        match = _UNDEFINED.search(message)
        if match is None:
            return ""
        known = [*variables, *self.globals, *_SET.findall(text)]
        near = difflib.get_close_matches(match[1], known, 1)
        nearest = f"; did you mean {near[0]!r}?" if near else ""
        return f"give it a value: -s {match[1]}=VALUE{nearest}"


def answers(job: dict[str, Any]) -> Iterator[dict[str, object]]:
    """Yields the one answer to a job of the child process."""
    environment = FlowEnvironment(job["folder"], job["code_trusted"])
    variables = {name: ast.literal_eval(text) for name, text in job["variables"].items()}
    variables[ALL_VARIABLES] = variables
    environment.globals.update(job["names"])
    yield environment.answer(job["text"], variables, job)
