"""Reports mistakes in the runtime of tasks that one value alone does not show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import cast

from tidewheel.core.graph.definition import Events, NodeDef
from tidewheel.core.graph.findings import Findings, Position, meant
from tidewheel.formats.flow_cylc.checker import Values, position_of
from tidewheel.formats.flow_cylc.handler_fields import FIELD, BadField, with_references
from tidewheel.formats.flow_cylc.items import TASK_EVENTS
from tidewheel.formats.flow_cylc.names import (
    message_problem,
    output_name_problem,
    variable_name_problem,
)
from tidewheel.formats.flow_cylc.sections import Section
from tidewheel.formats.flow_cylc.source_text import SourceText

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
_LEGACY_PLACE = {"job": ("batch system", "batch submit command template"), "remote": ("host",)}


class SectionChecks:
    """Checks of one section under `[runtime]`, whichever names it stands for."""

    def __init__(self, source: SourceText, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._legacy_warned = False

    def check(self, section: Section, values: Values) -> None:
        if "parameter environment templates" in values:
            self._merge_templates(section, values)
        if "environment" in values:
            self._check_variables(section, values)
        if "outputs" in values:
            self._check_outputs(section, values)
        if len(cast("str", values.get("completion") or "")) > COMPLETION_LENGTH_MAX:
            self._refuse_completion(section, values)
        if "job" in values or "remote" in values:
            self._check_place(section, values)
        platform = values.get("platform")
        if platform and "`" in cast("str", platform):
            seen = f"[runtime][{section.name}]platform: backticks are not accepted"
            self._error("bad-value", seen, "write $(command)", section, "platform")

    def _merge_templates(self, section: Section, values: Values) -> None:
        """Merges templates into the variables; they come before the others."""
        own = cast("Values", values.pop("parameter environment templates"))
        present = cast("Values", values.get("environment", {}))
        values["environment"] = {
            **{name: value for name, value in own.items() if name not in present},
            **present,
        }
        seen = f"[runtime][{section.name}][parameter environment templates] is an old name"
        hint = f"move its items to [runtime][{section.name}][environment]"
        place = self._place(section, "parameter environment templates")
        self._findings.warning("obsolete", seen, hint, place)

    def _check_variables(self, section: Section, values: Values) -> None:
        for name in cast("Values", values["environment"]):
            problem = variable_name_problem(name)
            if problem:
                seen = f"{name!r} cannot be the name of an environment variable"
                self._error("bad-name", seen, problem, section, "environment", name)

    def _check_outputs(self, section: Section, values: Values) -> None:
        for name, message in cast("dict[str, str]", values["outputs"]).items():
            problem = output_name_problem(name)
            if problem:
                seen = f"{name!r} cannot be the name of an output"
                self._error("bad-name", seen, problem, section, "outputs", name)
            problem = message_problem(message)
            if problem:
                seen = f"{message!r} cannot be the message of output {name!r}"
                self._error("bad-value", seen, problem, section, "outputs", name)

    def _refuse_completion(self, section: Section, values: Values) -> None:
        del values["completion"]
        seen = (
            f"[runtime][{section.name}]completion has more than {COMPLETION_LENGTH_MAX} "
            "characters"
        )
        self._error("bad-value", seen, "name fewer outputs", section, "completion")

    def _check_place(self, section: Section, values: Values) -> None:
        if cast("Values", values.get("remote", {})).get("owner"):
            seen = f"[runtime][{section.name}][remote]owner is no longer accepted"
            hint = "name a platform on which jobs run as that user"
            self._error("obsolete", seen, hint, section, "remote", "owner")
        for name, items in _LEGACY_PLACE.items():
            given = cast("Values", values.get(name, {}))
            for item in items:
                if not given.get(item):
                    continue
                if values.get("platform"):
                    seen = (
                        f"[runtime][{section.name}][{name}]{item} cannot stand beside platform"
                    )
                    self._error("platform-conflict", seen, "remove it", section, name, item)
                elif not self._legacy_warned and given[item] != "localhost":
                    self._legacy_warned = True
                    self._findings.warning(
                        "obsolete",
                        f"[runtime][{section.name}][{name}]{item} is an old way to say where "
                        "jobs run",
                        "write platform = NAME",
                        self._place(section, name, item),
                    )

    def _error(self, code: str, message: str, hint: str, section: Section, *path: str) -> None:
        self._findings.error(code, message, hint, self._place(section, *path))

    def _place(self, section: Section, *path: str) -> Position:
        entry = section
        for name in path:
            inner = entry.entries.get(name)
            if inner is None:
                break
            if not isinstance(inner, Section):
                return position_of(inner, self._source)
            entry = inner
        return position_of(entry, self._source)


def check_tasks(
    nodes: Iterable[NodeDef], meta: Mapping[str, object], findings: Findings
) -> None:
    """Checks what a task has in the end; tasks that share a value share its finding."""
    seen: set[tuple[int, int, int]] = set()
    for node in nodes:
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


def _check_messages(node: NodeDef, findings: Findings) -> None:
    by_message: dict[str, str] = {}
    for name, message in node.outputs:
        other = by_message.setdefault(message, name)
        if other != name:
            findings.error(
                "duplicate-message",
                f"outputs {other!r} and {name!r} of {node.name!r} have the same message "
                f"{message!r}",
                "give each output a message of its own",
                node.position,
            )


def _check_events(node: NodeDef, meta: Mapping[str, object], findings: Findings) -> None:
    events: Events = node.events
    known = [*TASK_EVENTS, *(name for name, _ in node.outputs)]
    for event in (*events.handled_events, *events.mail_events):
        if event not in known:
            seen = f"{event!r} in [runtime][{node.name}][events] is no event and no output"
            hint = meant(event, known, f"events are {', '.join(TASK_EVENTS)}")
            findings.warning("unknown-event", seen, hint, node.position)
    names = {*HANDLER_NAMES, *(f"workflow_{name}" for name in meta), *dict(node.meta)}
    _check_handlers(events.handlers, names, repr(node.name), findings, node.position)


def check_run_handlers(
    handlers: Handlers, meta: Mapping[str, object], findings: Findings, place: Position
) -> None:
    """Checks the handlers of `[scheduler][events]`."""
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
            hint = "known are " + ", ".join(f"%({name})s" for name in sorted(names))
            findings.error(BAD_HANDLER, seen, hint, place)
        elif not FIELD.search(command) and handler_problem(f"{command} %(event)s", names):
            findings.warning(
                "handler-arguments",
                f"event handler {command!r} of {whose} is called without arguments, since they "
                "could be run as commands",
                "let it read the variables TIDEWHEEL_EVENT_EVENT, TIDEWHEEL_EVENT_MESSAGE, …",
                place,
            )


def handler_problem(command: str, names: Iterable[str]) -> str:
    """Says why the fields of a handler's command cannot be filled; empty if they can."""
    for match in FIELD.finditer(command):
        name = match["name"]
        if name is None and match[0] != "%%":
            return f"{match[0]} is no field; write %% for a percent sign"
        if name is not None and name not in names:
            return f"{match[0]} is not known"
    try:
        with_references(command, lambda match: match[0])
    except BadField as error:
        return str(error)
    return ""
