"""Renders in a Jinja2 sandbox that tells which line of a template made each line of text.

How lines are traced: before a template is compiled, a mark with file and line is put in front
of every piece of literal text and after every line break in it; taken out of the result, the
marks tell where each line came from. A template that can look at its own output (macros and the
like) might behave otherwise because of them: it is rendered without marks too, and that result
counts. If the two differ, macros are left unmarked, and if that is not enough, lines are looked
up by their wording.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

MAIN = "<template>"
_MARK = re.compile("\0(\\d+):(\\d+)\0")
# Text in these is a value to the template, not (yet) a part of the output.
_CAPTURING = (nodes.AssignBlock, nodes.FilterBlock, nodes.CallBlock)
# A template with one of these can look at text that it has made.
_LOOKING_BACK = (*_CAPTURING, nodes.Macro, nodes.Block, nodes.Import, nodes.FromImport)
_UNCLOSED = re.compile(r"innermost block that needs to be closed is '(\w+)'")


class TracedEnvironment(SandboxedEnvironment):
    """Renders a text; `files` are those that it was made from, the text itself first."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - Jinja2's own options
        self.files = [MAIN]
        self._marking = False
        self._marking_macros = False
        self._looks_back = False
        super().__init__(**options)

    def answer(
        self, text: str, variables: dict[str, object], job: dict[str, Any]
    ) -> dict[str, object]:
        """Returns the lines of a rendered text with their origins, or why there are none."""
        try:
            self.prepare(text)
            rendered, origins = self.render_traced(text, variables)
        except MemoryError:
            self.cache = None  # room for the answer
            memory = f"{job['memory_bytes'] // 1024**2} MiB of memory"
            seen = f"rendering needs more than {memory}"
            return _too_large(seen, "text or list that grows in a loop")
        except Exception as error:  # whatever a template or its filters raise is a finding
            return self.failure(error, text, variables)
        more = self.told()
        if len(rendered) + self.size_of(more) > job["output_bytes"]:
            seen = f"the template renders to more than {job['output_bytes']} bytes"
            return _too_large(seen, "loop that is too large")
        if "\0" in rendered:
            return {"code": "not-text", "message": "the rendered text contains a NUL character"}
        return {"lines": rendered.split("\n"), "origins": origins, **more}

    def prepare(self, text: str) -> None:
        """Prepares for rendering a text.

        What it raises is reported like an error of the template.
        """

    def told(self) -> dict[str, object]:
        """Returns what an answer has besides lines and origins."""
        raise NotImplementedError

    def size_of(self, told: dict[str, object]) -> int:
        """Returns how many of the bytes that an answer may have are taken by ``told``."""
        del told
        return 0

    def failure(
        self, error: Exception, text: str, variables: dict[str, object]
    ) -> dict[str, object]:
        """Returns the report of an error: its place, what is wrong and what to do."""
        file, line = where(error)
        code, message, hint = "template-failed", str(error), ""
        match error:
            case TemplateSyntaxError():
                code = "template-syntax"
                line, message, hint = self.syntax_failure(error, text, line)
            case UndefinedError():
                code, hint = "template-undefined", self.advice(message, text, line, variables)
            case SecurityError():
                code, hint = "template-forbidden", "a template cannot use Python internals"
            case RecursionError():
                message = "the template is nested too deeply"
            case _:
                code, message, hint = self.other_failure(error, text, line)
        return {"code": code, "message": message, "hint": hint, "file": file, "line": line}

    def syntax_failure(
        self, error: TemplateSyntaxError, text: str, line: int
    ) -> tuple[int, str, str]:
        """Returns the line where a syntax error should be mended, what is wrong, what to do."""
        error.source = error.source or text  # it has none before it is compiled
        if (unclosed := _unclosed_block(error)) is not None:
            word, begin = unclosed
            ends = f"add {{% end{word} %}} where it ends"
            return begin, f"the {{% {word} %}} that begins here is not closed", ends
        return line, str(error), ""

    def advice(self, message: str, text: str, line: int, variables: dict[str, object]) -> str:
        """Returns what to do about a name that has no value."""
        raise NotImplementedError

    def other_failure(self, error: Exception, text: str, line: int) -> tuple[str, str, str]:
        """Returns code, message and hint for an error that is none of Jinja2's own kinds."""
        raise NotImplementedError

    def render_traced(
        self, text: str, variables: dict[str, object]
    ) -> tuple[str, list[tuple[int, int]]]:
        """Returns the text, and for each of its lines the file and line of the template."""
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
            if name is not None and name not in self.files:
                self.files.append(name)
            self._mark(tree, 0 if name is None else self.files.index(name))
        return tree

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


def _too_large(message: str, cause: str) -> dict[str, object]:
    return {"code": "template-too-large", "message": message, "hint": f"look for a {cause}"}


def _unclosed_block(error: TemplateSyntaxError) -> tuple[str, int] | None:
    """Returns the word and the line of the block that the template does not close, or None."""
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


def where(error: Exception) -> tuple[str, int]:
    """Returns file ("" is the main text) and line of the innermost code that was running."""
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
    """Returns each line's origin, from the mark in front of its first visible character."""
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
    """Returns the origins of lines by their wording. A line that is not unique in the template
    has the origin of the line before it."""
    places: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        places[line.strip()] = 0 if line.strip() in places else number
    origins, current = [], 0
    for line in lines:
        current = places.get(line.strip(), 0) or current
        origins.append((0, current))
    return origins
