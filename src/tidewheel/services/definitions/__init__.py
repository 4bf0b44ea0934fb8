"""Loads the definition that a path names: a folder with a flow.cylc, a Python or a SIP file."""

from __future__ import annotations

from pathlib import Path

from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import PYTHON_SUFFIX
from tidewheel.formats.flow_cylc.settings import FlowSettings
from tidewheel.formats.flow_cylc.source_loader import read_source
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, LoadOptions, load_source

_SIP_SUFFIXES = (".yaml", ".yml", ".json")


def is_python_file(path: Path) -> bool:
    return path.suffix == PYTHON_SUFFIX


def is_sip_file(path: Path) -> bool:
    """Says whether the path is a YAML or JSON file, or a template of one."""
    return path.name.removesuffix(".j2").endswith(_SIP_SUFFIXES)


def load_definition(path: Path, how: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Reads, compiles and checks a definition; what is wrong is in the findings.

    A Python file is executed for that, as by python3. The template variables of `how` are the
    parameters of a request for a SIP definition.
    """
    if is_python_file(path):
        from tidewheel.services.definitions.python import load_python_file  # noqa: PLC0415

        return load_python_file(path, how, findings)
    if is_sip_file(path):
        from tidewheel.services.definitions.sip import load_sip_file  # noqa: PLC0415 - YAML

        return load_sip_file(path, how, findings).loaded
    source = read_source(path, how.source, findings)
    if not source.lines and findings.has_errors:
        # That there is no graph either would be no news.
        return LoadedWorkflow(source=source, settings=FlowSettings())
    return load_source(source, how, findings)
