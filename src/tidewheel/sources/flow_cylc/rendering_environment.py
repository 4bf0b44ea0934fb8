"""Jinja2 as a flow.cylc knows it, and a way to tell which line of a template made which line.

How lines are traced: before a template is compiled, a mark with file and line is put in front
of every piece of literal text and after every line break in it; taken out of the result, the
marks tell where each line came from. A template that can look at its own output (macros and the
like) might behave otherwise because of them: it is rendered without marks too, and that result
counts. If the two differ, macros are left unmarked, and if that is not enough, lines are looked
up by their wording.
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from jinja2 import (
    BaseLoader,
    Environment,
    StrictUndefined,
    Template,
    TemplateNotFound,
    TemplateSyntaxError,
    UndefinedError,
    nodes,
)
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from tidewheel.core.graph.findings import NOWHERE
from tidewheel.sources.flow_cylc.source_files import BadSource, SourceFolder
from tidewheel.sources.flow_cylc.template_functions import (
    FILTERS,
    FUNCTIONS,
    TemplateRaised,
    environment_names,
)

MAIN = "<template>"
_PYTHON_PREFIX = "__python__."
_MARK = re.compile("\0(\\d+):(\\d+)\0")
_UNDEFINED = re.compile(r"'(\w+)' is undefined")
# Text in these is a value to the template, not (yet) a part of the output.
_CAPTURING = (nodes.AssignBlock, nodes.FilterBlock, nodes.CallBlock)
# A template with one of these can look at text that it has made.
_LOOKING_BACK = (*_CAPTURING, nodes.Macro, nodes.Block, nodes.Import, nodes.FromImport)
_UNCLOSED = re.compile(r"innermost block that needs to be closed is '(\w+)'")


class FolderLoader(BaseLoader):
    """`{% include %}`, `{% import %}`: files of the folder and, if trusted, Python modules."""

    def __init__(self, folder: str, code_trusted: bool) -> None:
        self._folder = SourceFolder(Path(folder))
        self._code_trusted = code_trusted
        self.refused: BadSource | None = None

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        del environment
        try:
            lines = self._folder.read_lines(template, NOWHERE)
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

    def check_inside(self, name: str) -> None:
        """Code is read from the folder only, like any other file."""
        self._folder.resolve(name, NOWHERE)

    def _module(self, name: str) -> dict[str, object] | None:
        if not self._code_trusted:
            return None
        try:
            return vars(importlib.import_module(name))
        except (ImportError, ValueError, TypeError):
            return None


class FlowEnvironment(SandboxedEnvironment):
    """Strict about unknown names, as Cylc is."""

    def __init__(self, folder: str, code_trusted: bool) -> None:
        self.files = [MAIN]
        self._marking = False
        self._marking_macros = False
        self._looks_back = False
        self._folder = Path(folder)
        self._code_trusted = code_trusted
        self._folder_loader = FolderLoader(folder, code_trusted)
        super().__init__(
            loader=self._folder_loader, undefined=StrictUndefined, extensions=["jinja2.ext.do"]
        )
        self.filters.update(FILTERS)
        self.globals.update(FUNCTIONS)
        self.globals["environ"] = dict(os.environ) if code_trusted else {}
        if code_trusted:
            self.globals.update(environment_names())

    def load_custom_code(self) -> None:
        """`Jinja2Filters/name.py` defines the filter `name`; so do the two other folders."""
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
                self._folder_loader.check_inside(f"Jinja2{kind}/{file.name}")
                module = importlib.import_module(file.stem)
                table[file.stem] = getattr(module, file.stem)

    def render_traced(
        self, text: str, variables: dict[str, object]
    ) -> tuple[str, list[tuple[int, int]]]:
        """The text, and for each of its lines the file and line of the template."""
        marked = self._render(text, variables, marking=True, macros=True)
        if not self._looks_back:
            return _MARK.sub("", marked), _read_marks(marked)
        plain = self._render(text, variables, marking=False, macros=False)
        if _MARK.sub("", marked) == plain:
            return plain, _read_marks(marked)
        marked = self._render(text, variables, marking=True, macros=False)
        if _MARK.sub("", marked) == plain:
            return plain, _read_marks(marked)
        return plain, _look_up(text, plain.split("\n"))

    def _render(
        self, text: str, variables: dict[str, object], *, marking: bool, macros: bool
    ) -> str:
        self._marking, self._marking_macros = marking, macros
        if self.cache is not None:
            self.cache.clear()
        return self.from_string(text).render(variables)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        if any(True for _ in tree.find_all(_LOOKING_BACK)):
            self._looks_back = True
        if self._marking:
            self._mark(tree, self._file_number(name))
        return tree

    def _file_number(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self.files:
            self.files.append(name)
        return self.files.index(name)

    def _mark(self, node: nodes.Node, file_number: int) -> None:
        if isinstance(node, _CAPTURING):
            return
        if isinstance(node, nodes.Macro) and not self._marking_macros:
            return
        if isinstance(node, nodes.TemplateData):
            pieces = node.data.split("\n")
            node.data = "\n".join(
                f"\0{file_number}:{line}\0{piece}"
                for line, piece in enumerate(pieces, node.lineno)
            )
        for child in node.iter_child_nodes():
            self._mark(child, file_number)

    def failure(self, error: Exception, variables: dict[str, object]) -> dict[str, object]:
        file, line = _where(error)
        code, message, hint = "template-failed", str(error), ""
        match error:
            case TemplateSyntaxError():
                code = "template-syntax"
                unclosed = _unclosed_block(error)
                if unclosed is not None:
                    word, line = unclosed
                    message = f"the {{% {word} %}} that begins here is not closed"
                    hint = f"add {{% end{word} %}} where it ends"
            case TemplateNotFound():
                refused = self._folder_loader.refused
                assert refused is not None
                code, message, hint = refused.finding_code, str(refused), refused.hint
            case UndefinedError():
                code, hint = "template-undefined", self._advice(message, variables)
            case TemplateRaised():
                code = "template-raised"
            case SecurityError():
                code, hint = "template-forbidden", "a template may not reach into Python itself"
            case RecursionError():
                message = "the template is nested too deeply"
            case _:
                message = f"{type(error).__name__}: {message}"
        return {"code": code, "message": message, "hint": hint, "file": file, "line": line}

    def _advice(self, message: str, variables: dict[str, object]) -> str:
        match = _UNDEFINED.search(message)
        if match is None:
            return ""
        known = [*variables, *(name for name in self.globals)]
        near = difflib.get_close_matches(match[1], known, 1)
        nearest = f"; {near[0]!r} is known" if near else ""
        return f"give it a value: -s {match[1]}=VALUE{nearest}"


def _unclosed_block(error: TemplateSyntaxError) -> tuple[str, int] | None:
    """The word and the line of the block that the template does not close."""
    match = _UNCLOSED.search(error.message or "")
    if match is None or error.source is None:
        return None
    word = match[1]
    opened: list[int] = []
    for number, line in enumerate(error.source.split("\n"), 1):
        for end in re.findall(rf"\{{%[-+]?\s*(end)?{word}\b", line):
            if not end:
                opened.append(number)
            elif opened:
                opened.pop()
    return (word, opened[-1]) if opened else None


def _where(error: Exception) -> tuple[str, int]:
    """File ("" is the main text) and line of the innermost template code that was running."""
    if isinstance(error, TemplateSyntaxError):
        return error.name or "", error.lineno
    file, line = "", 0
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "__jinja_exception__" in trace.tb_frame.f_globals:
            file, line = "" if name == MAIN else name, trace.tb_lineno
        trace = trace.tb_next
    return file, line


def _read_marks(marked: str) -> list[tuple[int, int]]:
    """The mark in front of the first visible character of each line tells its origin."""
    origins = []
    current = (0, 0)
    for line in marked.split("\n"):
        here: tuple[int, int] | None = None
        last = 0
        for match in _MARK.finditer(line):
            if here is None and line[last : match.start()].strip():
                here = current
            current = (int(match[1]), int(match[2]))
            last = match.end()
        origins.append(here or current)
    return origins


def _look_up(text: str, lines: list[str]) -> list[tuple[int, int]]:
    """By wording: where the line stands in the template, if once; else as the one before."""
    places: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        places[line.strip()] = 0 if line.strip() in places else number
    origins, current = [], 0
    for line in lines:
        current = places.get(line.strip(), 0) or current
        origins.append((0, current))
    return origins
