"""Scripts of stages, read by bash before any stage runs: a mistake has the script's own line.

A warning, no error: the bash of the worker that runs the stage may be newer than the one here.
"""

from __future__ import annotations

from tidewheel.core.graph.findings import Position
from tidewheel.formats.sip.validation import Validation
from tidewheel.runners.shell.bash_syntax import bash_syntax_problem

SCRIPTS_READ_MAX = 200  # of one definition; each costs a process


def warn_of_scripts(judgement: Validation) -> None:
    """A finding for each script that bash cannot read."""
    folders = judgement.parameters.folders if judgement.parameters is not None else {}
    scripts = [(one.stage, one.script) for one in folders.values() if one.script is not None]
    for stage, script in scripts[:SCRIPTS_READ_MAX]:
        problem = bash_syntax_problem(script.text)
        if problem is not None:
            judgement.findings.warning(
                "script-syntax",
                f"stage {stage}: bash cannot read the script: {problem.words}",
                "the stage would fail before its first command; check that quotes, brackets, "
                "here-documents, if … fi and do … done are closed, here or before",
                Position(script.path, problem.line),
            )
