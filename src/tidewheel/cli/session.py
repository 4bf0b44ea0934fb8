"""Gives every command its options and its session: which store, how to answer, a client."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from tidewheel.lazy_dataclasses import NamedTuple

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.client.connection import Where

Words = tuple[str, ...]
Result = TypeVar("Result")
Answered = TypeVar("Answered")
Question = Callable[["AsyncClient"], Awaitable[Result]]
Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)


class OptionRow(Protocol):
    """Describes one or several options; a call adds them to a command, or to the function of
    one."""

    def __call__(self, command: Command, /) -> Command: ...


class Session(NamedTuple):
    """Holds the options that every command has: the store that was named, and how to answer.

    Both may stand before the command as well as after it.
    """

    store: str | None = None
    as_json: bool = False

    def ask(self, question: Question[Result]) -> Result:
        """Opens the store, asks the question, closes the store and returns the answer.

        No store is made: where this user has none yet, the answer is that of an empty one, and
        one that was named and is not there is refused.
        """
        from tidewheel.wiring.stores import store_to_read

        with store_to_read(self.store) as where:
            return ask_client(where, question)

    def ask_existing(self, question: Question[Result]) -> Result:
        """Asks a question that makes no sense without a store; raises NoStore if there is
        none."""
        from tidewheel.wiring.stores import require_store

        require_store(self.store)
        return ask_client(self.store, question)

    def ask_to_write(self, question: Question[Result]) -> Result:
        """Asks the question of a command that changes what is in the store.

        This user's own store is made if there is none; one that was named and is not there is
        refused.
        """
        self.require_if_named()
        return ask_client(self.store, question)

    def ask_or_make(self, question: Question[Result]) -> Result:
        """Asks the question of a command that may be the first; makes a store if there is none.

        If a store was named and is made, this is told.
        """
        new = NewStore(self.store, as_json=self.as_json)
        try:
            return ask_client(self.store, question)
        finally:
            new.tell()

    def answer(self, document: Answered, show: Callable[[Answered], object]) -> int:
        """Prints an answer, as JSON for programs, else as `show` does it for people.

        Returns exit status 0.
        """
        if self.as_json:
            from tidewheel.cli.output import say_json

            say_json(document)
        else:
            show(document)
        return 0

    def require_if_named(self) -> None:
        """Raises a refusal if a store was named that is not there."""
        from tidewheel.wiring.stores import require_if_named

        require_if_named(self.store)


class NewStore:
    """Tells once that a store was made at a place that was named: the name may be a mistake."""

    def __init__(self, where: str | None, *, as_json: bool) -> None:
        """Notes, before the store is opened, whether opening it will make it."""
        from tidewheel.wiring.stores import named_store_to_make

        self._path = None if as_json else named_store_to_make(where)

    def tell(self) -> None:
        """Tells that the store was made, if its file exists by now; later calls tell
        nothing."""
        if self._path is not None and os.path.exists(self._path):
            from tidewheel.cli.output import note, safe

            note(f"made a new store: {safe(self._path)}")
            self._path = None


def ask_client(where: Where, question: Question[Result]) -> Result:
    """Opens a store, asks the question, closes the store and returns the answer."""
    import asyncio

    from tidewheel.client import AsyncClient

    async def session() -> Result:
        async with AsyncClient(where) as client:
            return await question(client)

    return asyncio.run(session())


def stop_writing() -> int:
    """Discards the rest of the output, as its reader has gone; returns exit status 0, since
    that is no failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def option(names: str, text: str, **more: Any) -> OptionRow:  # noqa: ANN401 - click's own
    """Returns an option of a command: its names, and what follows them, as --help shows them.

    `-t --task tasks ID...` takes a text, any number of times, and is the parameter `tasks` of
    the function. Without an ID and without a type it is a flag. ``shown`` is a default that
    --help shows.
    """
    words = names.removesuffix("...").split()
    called = [word for word in words if word.startswith("-") or word.islower()]
    metavar = " ".join(word for word in words if word not in called)
    if names.endswith("..."):
        more["multiple"] = True
    elif not metavar and not more.keys() & {"type", "flag_value"}:
        more["is_flag"] = True
    if "shown" in more:
        more |= {"default": more.pop("shown"), "show_default": True}
    return click.option(*called, metavar=metavar or None, help=text or None, **more)


AS_JSON = option("--json as_json", "Answer in JSON.")


def options(*rows: OptionRow) -> OptionRow:
    """Joins several options to one row, which adds them to a command in their order."""

    def add(command: Command) -> Command:
        for row in rows if isinstance(command, click.Command) else reversed(rows):
            command = row(command)
        return command

    return add


def is_said(name: str) -> bool:
    """Says whether the option that fills this parameter stands on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def refuse_said(names: Collection[str], why: str) -> None:
    """Raises a usage error for the first of these parameters whose option was typed.

    It would have no effect: ``why`` says what it works with, and what to do. An argument of
    the same name is no option.
    """
    for name in filter(is_said, names):
        if typed := _typed(name):
            raise click.UsageError(f"{typed} {why}")


def check_action(action: str, takers: Mapping[str, str]) -> None:
    """Raises a usage error for an option that this action does not take.

    ``takers`` says for a parameter which actions take it: `list`, or `check and render`.
    """
    for name, actions in takers.items():
        if action not in actions.split(" and "):
            refuse_said((name,), f"is for {actions}, not for {action}; leave it out")


def check_beside(needed: Mapping[str, str]) -> None:
    """Raises a usage error for an option without the other one that it works with."""
    for name, other in needed.items():
        if not is_said(other):
            refuse_said((name,), f"works only with {_typed(other)}; give both")


def check_apart(names: Collection[str], other: str) -> None:
    """Raises a usage error for one of these options beside one that leaves it no effect."""
    if is_said(other):
        refuse_said(names, f"works only without {_typed(other)}; leave out one of them")


def _typed(name: str) -> str:
    """Returns the option of a parameter as it is typed: `-n/--limit`."""
    params = click.get_current_context().command.params
    known = [one for one in params if isinstance(one, click.Option)]
    return "/".join(word for one in known if one.name == name for word in one.opts)


def examples_text(examples: Sequence[str]) -> str | None:
    """Returns the examples below the options in the --help of a command; None without
    examples."""
    lines = "\n".join(f"  tidewheel {one}" for one in examples)
    return f"\b\nExamples:\n{lines}\n" if examples else None


def session_command(
    name: str, *examples: str, epilog: str | None = None
) -> Callable[[Callable[..., object]], click.Command]:
    """Makes a click command of a function, with the options --store and --json.

    The function gets a Session as its first argument.
    """
    epilog = epilog or examples_text(examples)

    def build(function: Callable[..., object]) -> click.Command:
        def call(*args: object, store: str | None, as_json: bool, **options: object) -> object:
            outer = click.get_current_context().find_object(Session) or Session()
            session = Session(store=store or outer.store, as_json=as_json or outer.as_json)
            try:
                return function(session, *args, **options)
            except BrokenPipeError:  # here, as click would call it a failure
                return stop_writing()

        command = click.command(name, epilog=epilog)(update_wrapper(call, function))
        store_help = "The store or the server (or set TIDEWHEEL_STORE or TIDEWHEEL_SERVER)."
        return options(option("--store --server store URL", store_help), AS_JSON)(command)

    return build
