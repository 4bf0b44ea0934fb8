"""Does ``tidewheel convert``: writes files of SIP's version 1 as 2.0."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, plural, safe, say
from tidewheel.cli.session import AS_JSON, Session, examples_text, option, stop_writing
from tidewheel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidewheel.services.definitions.conversion import Conversion

FOLDER = "converted"
PATH = click.Path(path_type=Path)
EXAMPLES = (
    "convert mock_workflow_1.0.0.json",
    "convert workflows --to workflows-2.0",
    "convert workflows --check",
    "convert sbi_config.json",
)


@click.command("convert", epilog=examples_text(EXAMPLES))
@click.argument("path", type=PATH)
@option(
    "--to DIR",
    f"Write into this folder. [default: {FOLDER}, in the folder PATH or beside the file]",
    type=PATH,
)
@option("--check", "Write nothing; only print what would be written.")
@AS_JSON
@click.pass_context
def command(
    context: click.Context, path: Path, *, to: Path | None, check: bool, as_json: bool
) -> int:
    """Convert SIP files of version 1 to 2.0: definitions with their stages, and requests.

    PATH is a definition, a scheduling block instance, a processing block, or a folder of them.
    The templates of a definition are taken from templates/WORKFLOW/VERSION/STAGE/VERSION beside
    it. The output says what could not be converted, and whether the result can be registered
    and run. No existing file is changed: if a file or a link is in the way, nothing is
    written. Exit 1 if files were written that you have to complete by hand, 2 if nothing could
    be converted or written; with --check, 2 for any of these.
    """
    from tidewheel.services.definitions.conversion import convert

    as_json = as_json or (context.find_object(Session) or Session()).as_json
    folder = to or (path if path.is_dir() else path.parent) / FOLDER
    made = convert(path)
    for one in (one for part in made.converted for one in part.problems):
        made.findings.add(one.inside(str(folder)))
    files = made.files()
    _check_place(folder, files, made)
    is_refused = not check and any(one.code == EXISTS for one in made.findings)
    is_written = bool(files) and not check and not is_refused
    if is_written:
        for name, content in reversed(files.items()):  # a definition after its stages
            write_new(folder / name, content)
    try:
        _tell(made, folder, is_written=is_written, as_json=as_json)
    except BrokenPipeError:
        return stop_writing()
    is_empty = not (made.converted or made.unchanged)
    if not made.findings.has_errors and not is_empty:
        return ExitCode.DONE
    return ExitCode.FAILED if is_written else ExitCode.REFUSED


EXISTS = "file-exists"


def _check_place(folder: Path, files: Mapping[str, bytes], made: Conversion) -> None:
    """Reports files that are there already and say something else, and links on the way."""
    from tidewheel.core.graph.findings import Position

    hint = "remove it, or name another folder with --to"
    for name, content in files.items():
        there = folder / name
        way = [one for one in there.parents if one.is_relative_to(folder) and one != folder]
        if link := next((one for one in (there, *way) if one.is_symlink()), None):
            seen = "this is a symbolic link; no file is written through a link"
            made.findings.error(EXISTS, seen, hint, Position(str(link)))
        elif there.exists() and not _is_same(there, content):
            seen = "this file exists already, with other content"
            made.findings.error(EXISTS, seen, hint, Position(str(there)))


def _is_same(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def write_new(
    path: Path, content: bytes, *, executable: bool = False, verb: str = "convert"
) -> None:
    """Writes a file that is not there yet, whole or not at all; never over another one."""
    if path.exists() and _is_same(path, content):
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        if executable:
            mode = part.stat().st_mode  # by whom it may be read: the umask has said that
            part.chmod(mode | (mode & 0o444) >> 2)
        try:
            os.link(part, path)  # which fails where one is, as a rename would not
        finally:
            part.unlink()
    except OSError as error:
        if isinstance(error, FileExistsError) and _is_same(path, content):
            return  # another one like this was quicker
        reason = (error.strerror or "unknown reason").lower()
        raise Refused(
            f"{path} cannot be written: {reason}; solve this, then {verb} again"
        ) from None


def _tell(made: Conversion, folder: Path, *, is_written: bool, as_json: bool) -> None:
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages.findings import show_findings
    from tidewheel.core.graph.findings import finding_document
    from tidewheel.services.definitions.conversion import DEFINITION, document_of

    findings = made.findings.sorted()
    if as_json:
        found = [finding_document(one) for one in findings]
        told = {"to": str(folder), "written": is_written, **document_of(made)}
        say_json(told | {"findings": found})
        return
    show_findings(findings, None, note)
    for one in made.converted:
        where = safe(folder / one.file)
        say(f"{safe(one.source)} -> {where}: {safe(one.name)}; {safe(one.verdict)}")
    for name in made.unchanged:
        say(f"{safe(name)}: it is version 2.0 already")
    if not is_written:
        is_empty = not (made.converted or made.unchanged or findings)
        none = ": there is no definition and no request of version 1" if is_empty else ""
        say(f"nothing was written{none}")
        return
    count = plural(len(made.files()), "file")
    say(f"{count} in {safe(folder)}")
    if definitions := [one for one in made.converted if one.kind == DEFINITION]:
        is_valid = all(one.is_valid for one in definitions)
        first = "Then" if is_valid else "Correct the errors above, then"
        say(f"{first}: tidewheel register {safe(folder)}")
