"""Reports mistakes in `[runtime]` that reading a single value does not find."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from tidewheel.core.graph.definition import Events, NodeDef
from tidewheel.core.graph.findings import Findings, Position, meant
from tidewheel.core.graph.outputs import STANDARD
from tidewheel.formats.flow_cylc.checker import Values
from tidewheel.formats.flow_cylc.handler_fields import (
    FIELD,
    BadField,
    quoted_field,
    with_references,
)
from tidewheel.formats.flow_cylc.items import TASK_EVENTS
from tidewheel.formats.flow_cylc.names import (
    message_problem,
    output_name_problem,
    variable_name_problem,
)
from tidewheel.formats.flow_cylc.sections import PlacedFindings, Section

# What a command of an event handler may show, besides the task's and the workflow's meta items.
RUN_HANDLER_NAMES = frozenset(
    {"event", "message", "workflow", "suite", "uuid", "suite_uuid", "host", "port", "owner"}
    | {"workflow_url", "suite_url", "title", "URL", "description"}
    | {"workflow_title", "workflow_URL", "workflow_description"}
)
HANDLER_NAMES = RUN_HANDLER_NAMES | frozenset(
    {"id", "point", "name", "submit_num", "try_num", "job_id", "batch_sys_job_id"}
    | {"job_runner_name", "batch_sys_name", "submit_time", "start_time", "finish_time"}
    | {"platform_name", "user@host", "task_url"}
)
Handlers = Iterable[tuple[str, tuple[str, ...]]]  # as in Events
COMPLETION_LENGTH_MAX = 2_000
BAD_HANDLER = "bad-handler"
_LEGACY_PLACES = (
    *(("job", "batch system"), ("job", "batch submit command template"), ("remote", "host")),
)


class SectionChecks:
    """Checks the sections under `[runtime]`, each once for all names that it stands for."""

    def __init__(self, findings: PlacedFindings) -> None:
        self._findings = findings
        self._legacy_warned = False
        self._sound_names: set[str] = set()  # of environment variables

    def check(self, section: Section, values: Values) -> None:
        if "parameter environment templates" in values:
            self._merge_templates(section, values)
        variables: Any = values.get("environment", ())
        for name in variables:
            if name in self._sound_names:
                continue
            if problem := variable_name_problem(name):
                seen = f"{name!r} cannot be the name of an environment variable"
                self._findings.error("bad-name", seen, problem, section, "environment", name)
            else:
                self._sound_names.add(name)
        if "outputs" in values:
            self._check_outputs(section, values)
        if "completion" in values and len(str(values["completion"])) > COMPLETION_LENGTH_MAX:
            del values["completion"]
            item = f"{_here(section)}completion"
            seen = f"{item} has more than {COMPLETION_LENGTH_MAX} characters"
            hint = "name fewer outputs"
            self._findings.error("bad-value", seen, hint, section, "completion")
        if "job" in values or "remote" in values:
            self._check_place(section, values)
        if "platform" in values and "`" in str(values["platform"]):
            seen = f"{_here(section)}platform: backticks are not accepted"
            self._findings.error("bad-value", seen, "write $(command)", section, "platform")

    def _merge_templates(self, section: Section, values: Values) -> None:
        """Moves parameter environment templates before the other variables; warns of them."""
        here, old = _here(section), "parameter environment templates"
        own = cast("Values", values.pop(old))
        present = cast("Values", values.get("environment", {}))
        first = {name: value for name, value in own.items() if name not in present}
        values["environment"] = {**first, **present}
        hint = f"move its items to {here}[environment]"
        self._findings.warning("obsolete", f"{here}[{old}] is an old name", hint, section, old)

    def _check_outputs(self, section: Section, values: Values) -> None:
        for name, message in cast("dict[str, str]", values["outputs"]).items():
            if problem := output_name_problem(name):
                seen = f"{name!r} cannot be the name of an output"
                self._findings.error("bad-name", seen, problem, section, "outputs", name)
            if problem := message_problem(message):
                seen = f"{message!r} cannot be the message of output {name!r}"
                self._findings.error("bad-value", seen, problem, section, "outputs", name)

    def _check_place(self, section: Section, values: Values) -> None:
        here = _here(section)
        if cast("Values", values.get("remote", {})).get("owner"):
            seen = f"{here}[remote]owner is no longer accepted"
            hint = "name a platform on which jobs run as that user"
            self._findings.error("obsolete", seen, hint, section, "remote", "owner")
        for name, item in _LEGACY_PLACES:
            given = cast("Values", values.get(name, {})).get(item)
            if given and values.get("platform"):
                code, seen = (
                    "platform-conflict",
                    f"{here}[{name}]{item} cannot be set together with platform",
                )
                self._findings.error(code, seen, "remove it", section, name, item)
            elif given and not self._legacy_warned and given != "localhost":
                self._legacy_warned = True
                seen = f"{here}[{name}]{item} is an old way to say where jobs run"
                hint = "write platform = NAME"
                self._findings.warning("obsolete", seen, hint, section, name, item)


def _here(section: Section) -> str:
    return f"[runtime][{section.name}]"


def check_tasks(
    nodes: Iterable[NodeDef], meta: Mapping[str, object], findings: Findings
) -> None:
    """Reports mistakes in tasks after inheritance; those that share a value share a finding."""
    seen: set[tuple[int, int, int]] = set()
    scripts: set[str] = set()
    for node in nodes:
        if node.scripts.main not in scripts:
            scripts.add(node.scripts.main)
            _check_script(node, findings)
        key = (id(node.outputs), id(node.events), id(node.skip))
        if key in seen:
            continue
        seen.add(key)
        if node.outputs:
            _check_messages(node, findings)
        if node.events.handlers or node.events.handled_events or node.events.mail_events:
            _check_events(node, meta, findings)
        if "succeeded" in node.skip.outputs and "failed" in node.skip.outputs:
            message = f"[runtime][{node.name}][skip]outputs names both succeeded and failed"
            findings.error("bad-value", message, "remove one of the two", node.position)
        known = [*STANDARD, *(name for name, _ in node.outputs)]
        for output in node.skip.outputs:
            if output not in known:
                where = f"[runtime][{node.name}][skip]outputs"
                message = f"{where} names {output!r}, which this task does not have"
                hint = meant(output, known, "declare it under [[[outputs]]], or remove it")
                findings.warning("unknown-output", message, hint, node.position)


def _check_script(node: NodeDef, findings: Findings) -> None:
    """Reports a script that does nothing, as a template may have left only its comments."""
    main, others = node.scripts.main, (node.scripts.pre, node.scripts.post)
    if not main.lstrip().startswith("#") or any(others):
        return
    if all(line.lstrip()[:1] in ("", "#") for line in main.splitlines()):
        findings.warning(
            "idle-script",
            f"[runtime][{node.name}]script has only comments",
            "the task does nothing and succeeds; write its commands, or remove the script",
            node.position,
        )


def _check_messages(node: NodeDef, findings: Findings) -> None:
    by_message: dict[str, str] = {}
    for name, message in node.outputs:
        other = by_message.setdefault(message, name)
        if other != name:
            both = f"outputs {other!r} and {name!r} of {node.name!r}"
            seen = f"{both} have the same message {message!r}"
            hint = "give each output a different message"
            findings.error("duplicate-message", seen, hint, node.position)


def _check_events(node: NodeDef, meta: Mapping[str, object], findings: Findings) -> None:
    events: Events = node.events
    known = [*TASK_EVENTS, *(name for name, _ in node.outputs)]
    for event in (*events.handled_events, *events.mail_events):
        if event not in known:
            seen = (
                f"{event!r} in [runtime][{node.name}][events] is neither an event nor an output"
            )
            hint = meant(event, known, f"events are {', '.join(TASK_EVENTS)}")
            findings.warning("unknown-event", seen, hint, node.position)
    names = {*HANDLER_NAMES, *(f"workflow_{name}" for name in meta), *dict(node.meta)}
    _check_handlers(events.handlers, names, repr(node.name), findings, node.position)


def check_run_handlers(
    handlers: Handlers, meta: Mapping[str, object], findings: Findings, place: Position
) -> None:
    """Reports mistakes in the handlers of `[scheduler][events]`."""
    names = {*RUN_HANDLER_NAMES, *meta, *(f"workflow_{name}" for name in meta)}
    _check_handlers(handlers, names, "[scheduler][events]", findings, place)


def _check_handlers(
    handlers: Handlers, names: Collection[str], whose: str, findings: Findings, place: Position
) -> None:
    """Reports handlers whose fields cannot be filled, and those that get no arguments."""
    for command in (one for _, commands in handlers for one in commands):
        problem = handler_problem(command, names)
        if problem:
            seen = f"event handler {command!r} of {whose}: {problem}"
            hint = "expected fields are " + ", ".join(f"%({name})s" for name in sorted(names))
            findings.error(BAD_HANDLER, seen, hint, place)
        elif not FIELD.search(command) and handler_problem(f"{command} %(event)s", names):
            why = "is called without arguments, since they could be run as commands"
            seen = f"event handler {command!r} of {whose} {why}"
            hint = "let it read the variables TIDEWHEEL_EVENT_EVENT, TIDEWHEEL_EVENT_MESSAGE, …"
            findings.warning("handler-arguments", seen, hint, place)
        elif field := quoted_field(command):
            seen = f"event handler {command!r} of {whose} has {field} within quotes"
            hint = "remove the quotes: values are filled in safely, and Cylc adds its own"
            findings.note("handler-quotes", seen, hint, place)


def handler_problem(command: str, names: Iterable[str]) -> str:
    """Says why the fields of a handler's command cannot be filled; empty if they can."""
    for match in FIELD.finditer(command):
        name = match["name"]
        if name is None and match[0] != "%%":
            return f"{match[0]} is not a field; write %% for a percent sign"
        if name is not None and name not in names:
            return f"{match[0]} is not known"
    try:
        with_references(command, lambda match: match[0])
    except BadField as error:
        return str(error)
    return ""
