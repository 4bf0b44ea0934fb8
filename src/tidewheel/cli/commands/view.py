"""``tidewheel view``: the text of a definition as it is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, definition_command

if TYPE_CHECKING:
    from tidewheel.core.graph.findings import Findings
    from tidewheel.formats.flow_cylc.source_text import SourceText


@definition_command("view")
@click.option(
    "-i",
    "--plain",
    "--inline",
    "plain",
    is_flag=True,
    help="Print the text before its templates are rendered.",
)
@click.option(
    "-m", "--mark", is_flag=True, help="Begin each line with the file and line it comes from."
)
@click.option("-p", "-j", "--process", "--jinja2", "process", is_flag=True, hidden=True)
def command(definition: Definition, *, plain: bool, mark: bool, process: bool) -> int:
    """Print a definition with its included files in place and its templates rendered."""
    from tidewheel.cli.output import safe, say, say_json
    from tidewheel.cli.pages.findings import refuse
    from tidewheel.core.graph.findings import Findings

    definition.refuse_python("view")
    if plain and process:
        raise click.UsageError("--plain is before templating, --process after it")
    findings = Findings()
    source = _plain(definition, findings) if plain else _rendered(definition, findings)
    if source is None or (findings.has_errors and not source.lines):
        return refuse(findings, source, as_json=definition.as_json)
    places = [source.position(number) for number in range(len(source.lines))]
    if definition.as_json:
        lines = [
            {"text": text, "file": place.file, "line": place.line or None}
            for text, place in zip(source.lines, places, strict=True)
        ]
        say_json({"files": list(source.files), "lines": lines})
    else:
        width = max((len(str(place)) for place in places), default=0)
        for text, place in zip(source.lines, places, strict=True):
            head = f"{place!s:<{width}} | " if mark else ""
            say(head + "\t".join(safe(part) for part in text.split("\t")))
    if findings.has_errors:
        return refuse(findings, source, as_json=definition.as_json)
    return 0


def _rendered(definition: Definition, findings: Findings) -> SourceText:
    if definition.is_sip:
        from tidewheel.services.definitions.sip import sip_text

        return sip_text(definition.path, definition.load_options(), findings)
    from tidewheel.formats.flow_cylc.source_loader import read_source

    return read_source(definition.path, definition.source_options(), findings)


def _plain(definition: Definition, findings: Findings) -> SourceText | None:
    from tidewheel.core.graph.findings import Position
    from tidewheel.formats.flow_cylc.source_loader import find_flow_file
    from tidewheel.formats.flow_cylc.source_text import Inlined, SourceFolder, SourceText

    if definition.is_sip:
        from tidewheel.services.definitions.sip import sip_text_as_written

        return sip_text_as_written(definition.path, findings)
    found = find_flow_file(definition.path, findings)
    if found is None:
        return None
    folder, name = found
    inlined = Inlined(SourceFolder(folder.resolve()), findings)
    inlined.add(name, Position(name))
    files = tuple(inlined.folder.names) or (name,)
    return SourceText(folder, files, inlined.lines, inlined.origins)
