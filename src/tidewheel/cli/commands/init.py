"""Does ``tidewheel init``: makes a folder with an example that runs as it is."""

from __future__ import annotations

from pathlib import Path

import click

from tidewheel.cli.commands.convert import write_new
from tidewheel.cli.output import safe, say
from tidewheel.cli.session import AS_JSON, Session, examples_text, option
from tidewheel.errors import BadSetting, Refused
from tidewheel.lazy_dataclasses import NamedTuple

STARTERS = Path(__file__).parents[2] / "starters"
WORD = "starter"  # in names and texts of their files: becomes the name that was asked for


class Kind(NamedTuple):
    """Describes an example: what it is, and the two commands that come next."""

    text: str
    next: tuple[tuple[str, str], tuple[str, str]]


KINDS = {
    "cycling": Kind(
        "a forecast in flow.cylc that repeats over four cycle points",
        (
            ("tidewheel run starter/", "run it; prints what happens"),
            ("tidewheel tree starter", "show what ran, cycle by cycle"),
        ),
    ),
    "python": Kind(
        "a workflow in Python whose functions pass values",
        (
            ("tidewheel run starter/starter.py", "run it; prints what happens"),
            ("tidewheel log starter 3/report", "print what a job wrote"),
        ),
    ),
    "stages": Kind(
        "a workflow of stages (SIP), with a request for three runs of it",
        (
            ("tidewheel run starter/starter-1.0.0.yaml.j2", "run it; prints what happens"),
            (
                "tidewheel register starter/",
                "then: tidewheel sbi submit starter/requests/night.yaml",
            ),
        ),
    ),
    "queue": Kind(
        "tasks for the queue and a Python handler, without a workflow",
        (
            ("cd starter && tidewheel submit --file tasks.jsonl", "store four tasks"),
            (
                "tidewheel worker --handlers handlers:handlers --exit-when-idle",
                "execute them, in that folder",
            ),
        ),
    ),
}
DEFAULT = "cycling"
EXAMPLES = ("init forecast", *(f"init my-{name} --kind {name}" for name in list(KINDS)[1:]))


@click.command("init", epilog=examples_text(EXAMPLES))
@click.argument("name")
@option("--kind KIND", f"What to make. [default: {DEFAULT}]", type=click.Choice(list(KINDS)))
@AS_JSON
@click.pass_context
def command(context: click.Context, name: str, *, kind: str | None, as_json: bool) -> int:
    """Make a folder NAME with a working example, as a start for your own workflow.

    The kinds are cycling (a flow.cylc), python (a workflow in Python), stages (a SIP workflow
    with a request) and queue (tasks and a handler, without a workflow). A folder that is not
    empty is refused, so nothing is ever overwritten.
    """
    session = context.find_object(Session) or Session()
    chosen = kind or DEFAULT
    folder = Path(name)
    _check_name(folder)
    files = _files(chosen, folder.name)
    for inside, content in files.items():
        is_script = content.startswith(b"#!")
        write_new(folder / inside, content, executable=is_script, verb="make it")
    steps = [
        {"command": one.replace(WORD, _shown(one, folder)), "text": text.replace(WORD, name)}
        for one, text in KINDS[chosen].next
    ]
    document = {
        "folder": str(folder),
        "kind": chosen,
        "files": sorted(files),
        "next": [one["command"] for one in steps],
    }
    session = session._replace(as_json=session.as_json or as_json)

    def show(_: object) -> None:
        say(f"Made {safe(folder)}/: {KINDS[chosen].text}.")
        for file in sorted(files):
            say(f"  {safe(file)}")
        say("Next:")
        width = max(len(one["command"]) for one in steps)
        for one in steps:
            say(f"  {safe(one['command']):<{width}}   # {safe(one['text'])}")

    return session.answer(document, show)


def _shown(command: str, folder: Path) -> str:
    """Returns what stands for the example in a command: a run has the folder's last name."""
    is_of_run = command.startswith(("tidewheel tree", "tidewheel log"))
    return folder.name if is_of_run else str(folder)


def _check_name(folder: Path) -> None:
    """Raises a refusal if the folder's name cannot be that of a workflow, or is in use."""
    from tidewheel.core.operator.registry import name_problem

    if problem := name_problem(folder.name):
        fault = f"{folder.name!r} cannot be the name of a workflow: {problem}"
        raise BadSetting("NAME", folder.name, fault=fault)
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        raise Refused(f"{folder} exists already; give another name, or an empty folder")


def _files(kind: str, name: str) -> dict[str, bytes]:
    """Returns the files of an example by their paths in its folder, with the name put in."""
    root = STARTERS / kind
    found = {}
    for path in sorted(one for one in root.rglob("*") if one.is_file()):
        if path.suffix == ".pyc":
            continue
        inside = path.relative_to(root).as_posix().replace(WORD, name)
        found[inside] = path.read_bytes().replace(WORD.encode(), name.encode())
    assert found, f"the package lacks {root}"
    return found
