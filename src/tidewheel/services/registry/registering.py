"""From bundles of files to definitions that can be registered, each with two verdicts.

Only the files of the bundle count, not the folder that they came from: what is judged is what
is kept. One bundle may hold several SIP definitions, or one flow.cylc, or one Python file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidewheel.core.graph.findings import Findings, InvalidDefinition, Position
from tidewheel.core.operator.definition import PYTHON_SUFFIX
from tidewheel.core.operator.registry import Bundle
from tidewheel.formats.flow_cylc.loading import FLOW_FILE
from tidewheel.formats.sip.bundle import is_definition
from tidewheel.services.definitions.received import path_findings
from tidewheel.services.registry.judged import Judged, Manner
from tidewheel.services.registry.judging_flows import judged_flow
from tidewheel.services.registry.judging_python import (
    judged_python,
    python_files,
    python_refused,
)
from tidewheel.services.registry.judging_sips import judged_sips


def judge_bundles(bundles: Sequence[Bundle], manner: Manner) -> list[Judged]:
    """Every definition in them; InvalidDefinition if a bundle holds none at all."""
    found = [
        replace(one, folder=bundle.folder)
        for bundle in bundles
        for one in _told_inside(bundle.folder, _judged(bundle, manner))
    ]
    first: dict[str, Judged] = {}
    for one in found:
        other = first.setdefault(str(one), one)
        if other.definition.digest != one.definition.digest:
            findings = Findings()
            both = f"{other.path} and {one.path}"
            if other.path == one.path:
                both = f"two files that are called {one.file}, in different folders,"
            findings.error(
                "two-definitions",
                f"{both} are both {one}",
                "give one of them another version, or another name",
                Position(one.path),
            )
            raise InvalidDefinition(str(one), findings)
    return list({str(one): one for one in found}.values())


def _told_inside(folder: str, judged: Iterator[Judged]) -> Iterator[Judged]:
    """The same; a refusal of them all names the folder, too."""
    try:
        yield from judged
    except InvalidDefinition as refused:
        if not folder:
            raise
        found = [one.inside(folder) for one in refused.findings]
        raise InvalidDefinition(folder, found) from refused


def _judged(given: Bundle, manner: Manner) -> Iterator[Judged]:
    bundle = _inside(given)
    findings = Findings()
    for message in path_findings(bundle.files):
        findings.error("bad-path", message, "paths are relative, such as bin/plot")
    if findings.has_errors:
        raise InvalidDefinition(bundle.name or "bundle", findings)
    if bundle.file.endswith(PYTHON_SUFFIX):
        yield judged_python(bundle, manner)
    elif FLOW_FILE in bundle.files and bundle.file in ("", FLOW_FILE):
        yield judged_flow(bundle, manner)
    elif not any(map(is_definition, bundle.files)) and python_files(bundle.files):
        raise python_refused(bundle.name or "bundle")
    else:
        named = bool(given.name or given.version)
        yield from judged_sips(bundle, manner, is_named=named)


def _inside(bundle: Bundle) -> Bundle:
    """A bundle of one folder is that of what lies in the folder, and may be called so."""
    tops = {path.partition("/")[0] for path in bundle.files}
    if len(tops) != 1 or any("/" not in path for path in bundle.files):
        return bundle
    (top,) = tops
    return replace(
        bundle,
        files={path.partition("/")[2]: one for path, one in bundle.files.items()},
        executable=frozenset(path.partition("/")[2] for path in bundle.executable),
        name=bundle.name or top,
        file=bundle.file.removeprefix(f"{top}/"),
    )
