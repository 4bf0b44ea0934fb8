"""Writes docs/reference/python.md from the docstrings of the names that `tidewheel` and
`tidewheel.testing` offer; a test compares the two."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tidewheel
from tidewheel import testing
from tidewheel.client.async_client import QueueChanges
from tidewheel.client.embedded import WorkerFields
from tidewheel.client.fields import Filters, TaskFields
from tidewheel.config import WorkerSettings
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.formats.python_api.declarations import FunctionTask, MappedTask
from tidewheel.formats.python_api.settings import Settings

FOLDER = Path(__file__).with_name("reference")
MADE = "Made from docstrings by `python docs/write_python_page.py`; do not edit by hand.\n"


class Part(NamedTuple):
    """Names a class of the page, and what of it is for the program alone."""

    name: str
    hidden: tuple[str, ...] = ()
    forms: tuple[tuple[str, type], ...] = ()  # what its keyword arguments are
    kind: type | None = None  # of what tidewheel does not offer by name: others return it


PARTS = (
    Part(
        "Client",
        ("run", "asynchronous"),
        (
            ("Fields of a task: `submit`, `submit_many`, `amend`", TaskFields),
            ("Filters of tasks: `list`, `cancel_matching`", Filters),
            ("Settings of a queue: `configure_queue`", QueueChanges),
        ),
    ),
    Part("Handlers", ("find",)),
    Part("JobContext", ("give_inputs", "mute", "printed", "flush_printed")),
    Part("Abort"),
    Part(
        "Worker",
        ("serve", "attend", "run_on", "at_database"),
        (("Settings of a worker", WorkerFields),),
    ),
    Part(
        "Workflow",
        ("load", "run_job", "function", "folder", "arguments"),
        (("Settings of tasks: `task`, `family`, `defaults`", Settings),),
    ),
    Part("FunctionTask", ("leaves", "expression"), kind=FunctionTask),
    Part("MappedTask", ("leaves", "expression"), kind=MappedTask),
)
FUNCTIONS = ("all_of", "any_of")
# Where the fields of a form are explained that have no words of their own.
EXPLAINED_BY: dict[type, type] = {WorkerFields: WorkerSettings, QueueChanges: QueueSettings}
TESTING = """\
For tests of your own: `from tidewheel.testing import failed, play`. [Test a
workflow](../howto/testing_a_workflow.md) shows how.
"""
INTRODUCTION = """\
Import the names from `tidewheel`: `from tidewheel import Client, Handlers, Worker, Workflow`.
Names for tests are in `tidewheel.testing`. `FunctionTask` and `MappedTask` are not imported:
methods of a workflow return them.
[The queue from Python](../howto/queue_from_python.md) and [workflows in
Python](../python_api.md) show how these names are used together.

Durations are seconds, `"10m"`, `"PT10M"` or a `timedelta`; sizes are bytes or `"2GiB"`.
`retries` is a number of retries (`3`), the delay before a single retry (`"1m"`), or a list of
delays (`["1m", "5m", "2*1h"]`), both for tasks of a queue and for tasks of workflows. Errors
are classes of `tidewheel.errors`: `Refused` if a request is refused, `Unavailable` if the store
or the server does not answer.
"""
PRINTED = """\
### What a handler prints and raises

`print`, and logging to `sys.stdout` or `sys.stderr`, go to the log of the handler's own task,
`job.out` and `job.err`, also if many handlers run at once in threads and coroutines:
`tidewheel log TASK` prints both. A worker that uses a server sends both to the server. When
one of them grows beyond 100 MB, all but its last 1 MB is deleted. Code in `asyncio.to_thread`
prints to the log, too. A thread that the handler starts itself (before Python 3.14) and
a program that it starts print to the worker's terminal.

While a `Worker` with handlers runs in your process, `sys.stdout` and `sys.stderr` are replaced:
text that a handler prints goes to its log, all other text to the original stream. When the
worker has ended, the original streams are put back.

The traceback of an exception is stored with the attempt. The worker prints one line with the
class of the exception and where it was raised, `tidewheel task TASK` shows the last calls in
your own code, and `tidewheel log TASK` ends with the whole traceback.
"""


def page() -> str:
    """Returns the page: each class with its members, then the functions."""
    parts = ["# Python: clients, workers, workflows\n\n" + MADE, INTRODUCTION]
    for part in PARTS:
        parts.append(_class(part))
        if part.name == "Client":
            same = "It has the methods of `Client`: await them; `events` is for `async for`.\n"
            parts.append(f"## AsyncClient\n\n{_words(tidewheel.AsyncClient)}\n{same}")
        if part.name == "JobContext":
            parts.append(PRINTED)
    for name in FUNCTIONS:
        function = getattr(tidewheel, name)
        parts.append(f"## {name}\n\n`{name}{_signature(function)}`\n\n{_words(function)}")
    parts.append(f"## tidewheel.testing\n\n{TESTING}")
    parts += [_name_for_tests(name) for name in testing.__all__]
    return "\n".join(parts)


def _name_for_tests(name: str) -> str:
    """Returns the part about a function of `tidewheel.testing`, or about what it returns."""
    thing = getattr(testing, name)
    if not isinstance(thing, type):
        return f"### {name}\n\n`{name}{_signature(thing)}`\n\n{_words(thing)}"
    lines = [f"### {name}\n\n{_words(thing)}", _table(thing)]
    for one, member in _members(thing):
        call = "" if isinstance(member, property) else _signature(member)
        words = inspect.getdoc(member) or ""
        lines.append(f"- `{one}{call}`: {' '.join(words.split())}")
    return "\n".join(lines) + "\n"


def _class(part: Part) -> str:
    kind = part.kind or getattr(tidewheel, part.name)
    lines = [f"## {part.name}\n\n{_words(kind)}"]
    if part.name != "JobContext" and part.kind is None:  # which others make
        lines.append(f"`{part.name}{_signature(kind.__init__)}`\n")
        if kind.__init__.__doc__ and kind.__init__ is not Exception.__init__:
            lines.append(_words(kind.__init__))
    for name, member in _members(kind):
        if name not in part.hidden:
            call = "" if isinstance(member, property) else _signature(member)
            lines.append(f"### {part.name}.{name}\n\n`{name}{call}`\n\n{_words(member)}")
    lines += [f"### {title}\n\n{_table(form)}" for title, form in part.forms]
    return "\n".join(lines)


def _members(kind: type) -> Iterator[tuple[str, object]]:
    """Yields the public methods and properties that have words, as they stand in the class."""
    classes = [one for one in kind.__mro__ if one.__module__.startswith("tidewheel.")]
    seen: set[str] = set()
    for one in classes:
        for name, member in vars(one).items():
            known = callable(member) or isinstance(member, property)
            if name.startswith("_") or name in seen or not known or not inspect.getdoc(member):
                continue
            seen.add(name)
            yield name, member


class _Plain(str):
    """Is a type as its author wrote it, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature(function: object) -> str:
    """Returns the parameters of a function without itself, as the author wrote them."""
    assert callable(function)
    signature = inspect.signature(function)
    given = [
        one.replace(annotation=_plain(one.annotation))
        for name, one in signature.parameters.items()
        if name != "self"
    ]
    answer = signature.return_annotation
    shown = signature.empty if answer in ("None", None) else _plain(answer)
    return str(signature.replace(parameters=given, return_annotation=shown))


def _plain(annotation: object) -> object:
    if not isinstance(annotation, str):
        return annotation
    return _Plain(re.sub(r"Unpack\[(\w+)\]", r"\1", annotation))


def _words(thing: object) -> str:
    """Returns the docstring as Markdown: what is indented is an example that can be run."""
    parts: list[str] = []
    for part in _paragraphs(inspect.getdoc(thing) or ""):
        if part.startswith("    "):
            parts.append(f"```python\n{textwrap.dedent(part)}\n```\n")
        else:
            parts.append(part.replace("``", "`") + "\n")
    return "\n".join(parts)


def _paragraphs(text: str) -> list[str]:
    """Returns the paragraphs of a text; the lines of an example stay together."""
    found: list[str] = []
    for part in text.split("\n\n"):
        if found and found[-1].startswith("    ") and part.startswith(("    ", "\n")):
            found[-1] += "\n\n" + part
        elif part:
            found.append(part)
    return found


def _table(form: type) -> str:
    rows = [f"| `{name}` | `{kind}` | {words} |\n" for name, kind, words in _fields(form)]
    return "| name | type | |\n| --- | --- | --- |\n" + "".join(rows)


def annotated_fields(form: type) -> Iterator[tuple[str, ast.AnnAssign, str]]:
    """Yields the fields of a class: name, how it is written, and the comment beside or above
    it."""
    source = inspect.getsource(form)
    lines = source.splitlines()
    [tree] = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2].strip()
            yield node.target.id, node, beside or _comment_above(lines[: node.lineno - 1])


def _comment_above(lines: list[str]) -> str:
    """Returns the comment at the end of these lines: words that are too long for one line."""
    found: list[str] = []
    for line in reversed(lines):
        if not line.lstrip().startswith("# "):
            break
        found.insert(0, line.strip().removeprefix("# "))
    return " ".join(found)


def _fields(form: type) -> Iterator[tuple[str, str, str]]:
    """Yields the fields of a form: name, type, and the comment or explanation beside it."""
    elsewhere: dict[str, str] = {}
    if form in EXPLAINED_BY:
        elsewhere = {name: words for name, _, words in annotated_fields(EXPLAINED_BY[form])}
    for name, node, comment in annotated_fields(form):
        kind, words = node.annotation, comment or elsewhere.get(name, "")
        if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "Annotated":
            assert isinstance(kind.slice, ast.Tuple)
            kind, said = kind.slice.elts
            words = words or str(ast.literal_eval(said))
        yield name, ast.unparse(kind).replace("|", "\\|"), words.replace("|", "\\|")


def files() -> dict[str, str]:
    """The text of the page by its name."""
    return {"python.md": page()}


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
