"""The Python file of a bundle, judged: to read it is to execute it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.operator.definition import (
    PYTHON,
    PYTHON_SUFFIX,
    RunOptions,
    StoredDefinition,
    sealed,
    stored_files,
)
from tidewheel.core.operator.registry import NO_VERSION, Bundle
from tidewheel.services.definitions.kept import load_options, unpack
from tidewheel.services.registry.judged import Judged, Manner, check_name, verdict


def judged_python(bundle: Bundle, manner: Manner) -> Judged:
    """Only where its code is trusted; else InvalidDefinition."""
    from tidewheel.services.definitions.python import load_python_file  # noqa: PLC0415

    if not manner.code_trusted:
        raise python_refused(bundle.name or bundle.file)
    findings = Findings()
    files = stored_files(bundle.files, bundle.executable)
    definition = StoredDefinition(
        digest="", workflow="", kind=PYTHON, text=bundle.file, files=files
    )
    with TemporaryDirectory() as folder:
        unpack(definition, Path(folder))
        how = load_options(RunOptions(now=manner.now))
        loaded = load_python_file(Path(folder, bundle.file), how, findings)
    refusing = Findings()
    stem = PurePosixPath(bundle.file).stem
    name = bundle.name or (loaded.workflow.name if loaded.workflow is not None else stem)
    check_name(name, bundle.version, bundle.file, refusing)
    is_right = loaded.graph is not None and not findings.has_errors
    return verdict(
        Judged(
            name=name,
            version=bundle.version or NO_VERSION,
            file=bundle.file,
            definition=sealed(replace(definition, workflow=name), trusted=True),
            registrable=is_right,
            runnable=is_right,
        ),
        findings,
        refusing,
        manner,
    )


def python_files(files: Iterable[str]) -> list[str]:
    """Those that lie in no folder."""
    return [one for one in files if one.endswith(PYTHON_SUFFIX) and "/" not in one]


def python_refused(name: str) -> InvalidDefinition:
    """What a server answers."""
    findings = Findings()
    findings.error(
        "python-definition",
        "a server takes no definition in Python: to read it is to execute it",
        "register it where the store is: tidewheel register FILE.py --store URL",
    )
    return InvalidDefinition(name, findings)
