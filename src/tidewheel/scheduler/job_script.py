"""Writes the bash script of one submission (SEMANTICS §12).

A script sets the facts of its job, reads the library that every job shares
(`runners/job_library.sh`), and calls its parts. Whatever a person wrote is a function of its
own, so that a script may `return` and declare variables of its own; texts are not changed.

A node with an err-script or an exit-script has its parts run in a second shell, under the eyes
of the first. All others run in the only shell there is: bash and the worker's wrapper tell the
truth about exits and signals by themselves, and a second shell would be a third of the cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote

from tidewheel.core.graph.node import NodeDef, Pairs, Scripts
from tidewheel.core.operator.names import JOB_OUTPUTS

# In the order in which they run. As in Cylc, [environment] may use what the env-script has set.
_PARTS = (
    ("env_script", "env"),
    ("environment", ""),
    ("pre_script", "pre"),
    ("script", "main"),
    ("post_script", "post"),
)
_LAST_PARTS = (("err_script", "on_error"), ("exit_script", "on_exit"))
_NEEDS_GUARD = "cylc__job__disable_fail_signals"  # who calls it wants to see to its own failure

# Only what may be a user's name stands without quotes: values may come from outside.
_USERS_FOLDER = re.compile(r"(~[\w.@+-]*/)(.*)", re.DOTALL | re.ASCII)
_USER = re.compile(r"~[\w.@+-]*", re.ASCII)


def facts_text(facts: Mapping[str, str]) -> str:
    """Writes facts of a job for the library, as assignments."""
    return "\n".join(f"TIDEWHEEL_{name}={quote(value)}" for name, value in facts.items())


def node_text(node: NodeDef, results: Pairs = ()) -> str:
    """Writes the part of a script that is the same for all jobs of a node.

    `results` are those of xtriggers, as names and values. They came from outside: they are
    taken as they are, never expanded, and count more than [environment].
    """
    scripts = node.scripts
    parts = _functions(scripts, _environment_body(node.environment, results))
    lines = [_hierarchy(node), _outputs(node), '. "$TIDEWHEEL_JOB_LIBRARY"']
    lines += _parameter_lines(node)
    if node.place.work_subdirectory:
        lines.append(f'tidewheel__work_in "{node.place.work_subdirectory}"')
    lines += [f"tidewheel__{name}() {{\n{body}\n}}" for name, body in parts.items()]
    lines += _calls(scripts, parts)
    return "\n".join(lines)


def dummy_node(node: NodeDef, seconds: float, *, fails: bool) -> NodeDef:
    """Returns the node as dummy mode runs it: it takes its time, says its outputs and ends."""
    lines = [f"sleep {seconds:g}"]
    if node.outputs:
        said = " ".join(quote(message) for _, message in node.outputs)
        lines.append(f'cylc message -- "$CYLC_WORKFLOW_ID" "$CYLC_TASK_JOB" {said}')
    if fails:
        lines.append('echo "it was meant to fail" >&2; exit 1')
    return replace(node, scripts=Scripts(main="\n".join(lines)), environment=())


def polling_node(node: NodeDef) -> NodeDef:
    """Returns a node whose script waits for a task of another workflow."""
    polling = node.polling
    workflow, _, rest = polling.target.partition("::")
    task, colon, output = rest.partition(":")
    words = ["cylc", "workflow-state"]
    if polling.message and not colon:
        selector, options = polling.message, ["--messages"]
    else:
        selector, options = output or "succeeded", []
    asked = f'{quote(f"{workflow}//")}"$CYLC_TASK_CYCLE_POINT"{quote(f"/{task}:{selector}")}'
    if polling.interval_seconds is not None:
        options.append(f"--interval={polling.interval_seconds:g}")
    if polling.polls_max is not None:
        options.append(f"--max-polls={polling.polls_max}")
    if polling.run_directory:
        options.append(f"--alt-cylc-run-dir={quote(polling.run_directory)}")
    command = " ".join([*words, asked, *options])
    scripts = replace(node.scripts, main=f"echo {quote(command)}\n{command}")
    return replace(node, scripts=scripts)


def assignment(name: str, value: str) -> str:
    """Assigns a variable of [environment]: expanded as in double quotes, `~` at its start."""
    in_folder = _USERS_FOLDER.fullmatch(value)
    if in_folder is not None:
        return f'{name}={in_folder[1]}"{in_folder[2]}"'
    return f"{name}={value}" if _USER.fullmatch(value) else f'{name}="{value}"'


def _environment_body(environment: Pairs, results: Pairs) -> str:
    taken = {name for name, _ in results}
    own = [(name, value) for name, value in environment if name not in taken]
    names = [name for name, _ in (*results, *own)]
    if not names:
        return ""
    # First exported, then assigned: a command in a later value sees the earlier variables, and
    # one that fails ends the job, which `export NAME=$(…)` would hide.
    lines = ["export " + " ".join(names)]
    lines += [f"{name}={quote(value)}" for name, value in results]
    lines += [assignment(name, value) for name, value in own]
    return "\n".join(lines)


def _functions(scripts: Scripts, environment: str) -> dict[str, str]:
    """The parts that do anything, by name."""
    bodies = {"environment": environment}
    for name, item in (("init_script", "init"), *_PARTS, *_LAST_PARTS):
        text = getattr(scripts, item) if item else ""
        if text and _has_command(text):
            bodies[name] = text
    return {name: body for name, body in bodies.items() if body}


def _has_command(text: str) -> bool:
    """bash accepts no function without a command in it."""
    lines = (line.lstrip() for line in text.splitlines())
    return any(line and not line.startswith("#") for line in lines)


def _calls(scripts: Scripts, parts: Mapping[str, str]) -> Sequence[str]:
    names = [f"tidewheel__{name}" for name, _ in _PARTS if name in parts]
    lines = ["tidewheel__init_script"] if "init_script" in parts else []
    lines += ["tidewheel__enter", "set -euo pipefail"]
    if "init_script" in parts:
        lines.append("tidewheel__say_started")
    if _is_guarded(scripts, parts):
        return [*lines, " ".join(["tidewheel__guard", *names])]
    return [*lines, *names, "tidewheel__succeeded"]


def _is_guarded(scripts: Scripts, parts: Mapping[str, str]) -> bool:
    return any(name in parts for name, _ in _LAST_PARTS) or _NEEDS_GUARD in scripts.init


def _hierarchy(node: NodeDef) -> str:
    # Farthest first, as existing scripts expect it.
    return f"TIDEWHEEL_TASK_NAMESPACE_HIERARCHY={quote(' '.join(reversed(node.lineage)))}"


def _outputs(node: NodeDef) -> str:
    """Returns the line of a job's script that lists what `message --output` may name."""
    return f"export {JOB_OUTPUTS}={quote(' '.join(name for name, _ in node.outputs))}"


def _parameter_lines(node: NodeDef) -> list[str]:
    return [
        f"export CYLC_TASK_PARAM_{name}={quote(str(value))} "
        f"TIDEWHEEL_TASK_PARAM_{name}={quote(str(value))}"
        for name, value in node.parameters
    ]
