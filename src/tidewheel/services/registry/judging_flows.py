"""The flow.cylc of a bundle, judged: in a folder that holds nothing but the bundle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    RunOptions,
    StoredDefinition,
    sealed,
    stored_files,
)
from tidewheel.core.operator.registry import NO_VERSION, Bundle
from tidewheel.formats.flow_cylc.loading import FLOW_FILE, SourceOptions
from tidewheel.formats.flow_cylc.template_variables import VariableTexts
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, load_workflow
from tidewheel.services.definitions.kept import load_options, unpack
from tidewheel.services.registry.judged import Judged, Manner, check_name, verdict

_META_VERSION = re.compile(
    r"^\s*\[meta\]\s*$(?:\n(?!\s*\[).*)*?\n\s*version\s*=([^\n#]*)", re.MULTILINE
)


def load_flow(
    definition: StoredDefinition,
    options: RunOptions,
    findings: Findings,
    parameters: Mapping[str, object],
    folder: Path,
    *,
    code_trusted: bool,
) -> LoadedWorkflow:
    """A flow.cylc as it was written, rendered anew in a folder that holds nothing else.

    Its code runs only if whoever asks may have it run, and whoever brought it could, too.
    """
    unpack(definition, folder)
    source = SourceOptions(
        variables=VariableTexts(values=parameters),
        workflow_name=definition.workflow,
        code_trusted=code_trusted and definition.is_trusted,
    )
    how = replace(load_options(options, definition.workflow), source=source)
    return load_workflow(folder, how, findings)


def judged_flow(bundle: Bundle, manner: Manner) -> Judged:
    """As it is without a request."""
    text = bundle.files[FLOW_FILE].decode(errors="replace").replace("\0", "\ufffd")
    definition = sealed(
        StoredDefinition(
            digest="",
            workflow=bundle.name,
            kind=FLOW_CYLC,
            text=text,
            files=stored_files(bundle.files, bundle.executable),
        ),
        trusted=manner.code_trusted,
    )
    findings, refusing = Findings(), Findings()
    with TemporaryDirectory() as folder:
        loaded = load_flow(
            definition,
            RunOptions(now=manner.now),
            findings,
            {},
            Path(folder),
            code_trusted=manner.code_trusted,
        )
    said = dict(loaded.settings.meta).get("version", "")
    version = bundle.version or said or _written_version(text)
    check_name(bundle.name, version, FLOW_FILE, refusing)
    is_right = loaded.graph is not None and not findings.has_errors
    # What a template lacks a request may give; any other mistake is there for ever.
    return verdict(
        Judged(
            name=bundle.name,
            version=version or NO_VERSION,
            file=FLOW_FILE,
            definition=definition,
            registrable=is_right or loaded.source.templated,
            runnable=is_right,
        ),
        findings,
        refusing,
        manner,
    )


def _written_version(text: str) -> str:
    """As [meta] says, of a text that only a request can render; "" if it does not."""
    found = _META_VERSION.search(text)
    return found[1].strip().strip("\"'") if found and "{" not in found[1] else ""
