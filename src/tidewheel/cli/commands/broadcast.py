"""``tidewheel broadcast``: settings of tasks that are yet to be submitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Target
    from tidewheel.core.operator.verbs import Broadcast

EPILOG = """\b
Examples:
  tidewheel broadcast forecast -n model -s '[environment]DEBUG=1'
  tidewheel broadcast forecast -p 3 -n MODELS -s 'execution time limit=PT2H'
  tidewheel broadcast forecast --clear -p 3
  tidewheel broadcast forecast
"""


class _Wishes(NamedTuple):
    """The options as they were given."""

    points: tuple[str, ...]
    namespaces: tuple[str, ...]
    settings: tuple[str, ...]
    set_file: Path | None
    cancel: tuple[str, ...]
    expire: str
    clear: bool
    display: bool

    @property
    def changes_something(self) -> bool:
        return bool(self.settings or self.cancel or self.clear or self.expire)

    def command(self, target: Target) -> Broadcast:
        from tidewheel.core.operator.verbs import Broadcast

        if target.rest:
            word = target.rest[0]
            raise click.UsageError(f"what is {word!r}? Points go with -p, tasks with -n")
        return Broadcast(
            points=self.points or ("*",),
            namespaces=self.namespaces or ("root",),
            settings=self.settings,
            cancel=self.cancel,
            clear=self.clear,
            expire=self.expire,
        )


@session_command("broadcast", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN]")
@click.option(
    "-p",
    "--point",
    "--cycle-point",
    "points",
    multiple=True,
    metavar="POINT",
    help="The cycle point; repeatable. [default: every point]",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    help="A task or family; repeatable. [default: root, which is every task]",
)
@click.option(
    "-s",
    "--set",
    "settings",
    multiple=True,
    metavar="ITEM=VALUE",
    help="A setting as in the definition: '[environment]X=1', 'script=true'; repeatable.",
)
@click.option(
    "-F",
    "--set-file",
    type=click.Path(path_type=Path),
    help="A file of such settings, under their sections.",
)
@click.option(
    "-c", "--cancel", multiple=True, metavar="ITEM", help="Cancel this setting; repeatable."
)
@click.option(
    "-C",
    "--clear",
    is_flag=True,
    help="Cancel all settings, of the given points and names if any.",
)
@click.option(
    "-e",
    "--expire",
    default="",
    metavar="POINT",
    help="Cancel the settings for points before this one.",
)
@click.option("-d", "--display", is_flag=True, help="Only list what is set.")
def command(session: Session, words: tuple[str, ...], **options: object) -> int:
    """Change settings of tasks that have not started yet; without options, list what is set."""
    from tidewheel.cli.runs.access import give
    from tidewheel.cli.verb_command import say_given

    wishes = _Wishes(**options)  # type: ignore[arg-type]
    if wishes.set_file is not None:
        found = settings_in(wishes.set_file.read_text(encoding="utf-8"))
        wishes = wishes._replace(settings=(*wishes.settings, *found))
    if wishes.display or not wishes.changes_something:
        return _list(session, words)
    say_given(session, give(session, words, wishes.command))
    return 0


def settings_in(text: str) -> list[str]:
    """The lines of a file, each under the sections that it stands in."""
    found: list[str] = []
    section = ""
    for line in (raw.strip() for raw in text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = f"[{line.strip('[]')}]"
        else:
            item, _, value = line.partition("=")
            found.append(f"{section}{item.strip()}={value.strip()}")
    return found


def _list(session: Session, words: tuple[str, ...]) -> int:
    from tidewheel.cli.output import Row, note, say_json, say_table
    from tidewheel.cli.pages.format import documents
    from tidewheel.cli.runs.access import look

    page = look(session, "broadcasts", words, lambda _: {})
    if session.as_json:
        say_json(page)
        return 0
    rows: list[Row] = [
        tuple(str(one[name]) for name in ("point", "namespace", "setting", "value"))
        for one in documents(page, "broadcasts")
    ]
    if rows:
        say_table(("POINT", "NAMESPACE", "SETTING", "VALUE"), rows)
    else:
        note("nothing is broadcast; set something: broadcast RUN -n TASK -s ITEM=VALUE")
    return 0
