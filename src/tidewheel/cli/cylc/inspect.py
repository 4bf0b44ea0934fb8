"""Does calls of Cylc that only read: show, dump, cat-log, ping, scan, broadcast --display."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidewheel.cli.cylc.arguments import Arguments, BadUsage, Ids, Option, options, read_ids
from tidewheel.errors import NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.core.operator.verbs import Command

Document = dict[str, Any]
MARKS = ("held", "queued", "runahead")


def _show(said: Arguments) -> str:
    ids = read_ids("show", said.words)
    document: Document = look(ids.workflow, "show", ids=list(ids.within))
    if "json" in said:
        return json.dumps(document, indent=4)
    if not ids.within:
        run = document["run"]
        return f"name: {run['name']}\nworkflow: {run['workflow']}\nstatus: {run['status']}"
    return "\n\n".join("\n".join(_task_lines(task)) for task in document["tasks"])


def _task_lines(task: Document) -> Iterator[str]:
    yield f"Task ID: {task['id']}"
    yield f"title: {task['title'] or '(not given)'}"
    yield f"description: {task['description'] or '(not given)'}"
    remarks = f" ({', '.join(task['remarks'])})" if task["remarks"] else ""
    yield f"state: {task['state']}{remarks}"
    yield f"flows: [{','.join(map(str, task['flows']))}]"
    yield "xtriggers: ('-': not satisfied)" if task["xtriggers"] else "xtriggers: (None)"
    for one in task["xtriggers"]:
        yield f"  {'+' if one['satisfied'] else '-'} {one['label']} = {one['call']}"
    yield "outputs: ('-': not completed)"
    for one in task["outputs"]:
        yield f"  {'+' if one['made'] else '-'} {task['id']} {one['output']}"


def _dump(said: Arguments) -> str:
    """Returns the status of the run or, with --tasks, the tasks in its pool, sorted by name
    or with --sort by point."""
    document: Document = look(read_ids("dump", said.words).workflow, "dump")
    if "raw" in said:
        return json.dumps(document, indent=4 if "pretty" in said else None)
    if "tasks" not in said:
        facts = {"workflow id": document["run"], "status": document["status"]}
        return "\n".join(f"{name}={value}" for name, value in facts.items())
    first, second = ("point", "name") if "sort" in said else ("name", "point")
    tasks = sorted(document["tasks"], key=lambda task: (task[first], task[second]))
    return "\n".join(_dump_line(task, (first, second), said) for task in tasks)


def _dump_line(task: Document, first: tuple[str, str], said: Arguments) -> str:
    flows = [f"[{','.join(map(str, task['flows']))}]"] if "flows" in said else []
    if "legacy" in said:
        words = [*(task[one] for one in first), task["state"]]
        return ", ".join(
            [*words, *(one if task[one] else f"not-{one}" for one in MARKS), *flows]
        )
    marks = ",".join(mark for mark in MARKS if task[mark])
    shown = f" ({marks})" if marks else ""
    beside = "".join(f" flows={one}" for one in flows)
    return f"{task['point']}/{task['name']}:{task['state']}{shown}{beside}"


def _cat_log(said: Arguments) -> str:
    ids = read_ids("cat-log", said.words)
    arguments: Document = {"id": ids.within[0] if ids.within else "", "file": "o"}
    if "file" in said and said.last("file") not in ("s", "scheduler"):
        arguments["file"] = said.last("file")
    submit = said.last("submit-number")
    if submit.isdecimal():
        arguments["submit"] = int(submit)
    document: Document = look(ids.workflow, "log", **arguments)
    mode = said.last("mode")
    if mode in ("p", "print"):
        return str(document["path"])
    if mode in ("d", "print-dir"):
        return str(document["path"]).rpartition("/")[0]
    if mode in ("l", "list-dir"):
        return "\n".join(one.rpartition("/")[2] for one in document["files"])
    return str(document["text"]).removesuffix("\n")


def _ping(said: Arguments) -> str:
    ids = read_ids("ping", said.words)
    if ids.within:
        tasks = look(ids.workflow, "show", ids=list(ids.within))["tasks"]
        assert isinstance(tasks, list), "the view says so"
        idle = [task["id"] for task in tasks if task["state"] != "running"]
        if idle:
            raise Refused(f"{', '.join(idle)}: not running")
        return ""
    document: Document = look(ids.workflow, "show")
    if not document["run"]["driven"]:
        raise Refused(f"{document['run']['name']} is not running")
    return f"{document['run']['name']} running"


def _scan(_said: Arguments) -> str:
    runs: Document = look("", "runs")
    return "\n".join(f"{one['name']} {one['status']}" for one in runs["runs"] if one["driven"])


def display_broadcasts(said: Arguments) -> str:
    """Returns what `cylc broadcast --display` prints."""
    document: Document = look(read_ids("broadcast", said.words).workflow, "broadcasts")
    found: dict[str, dict[str, dict[str, str]]] = {}
    for one in document["broadcasts"]:
        at_point = found.setdefault(one["point"], {})
        at_point.setdefault(one["namespace"], {})[one["setting"]] = one["value"]
    return json.dumps(found, indent=4)


# Calls that only look: their options, and the text that they print.
LOOKS: dict[str, tuple[tuple[Option, ...], Callable[[Arguments], str]]] = {
    "show": (options("--json, --list-prereqs, --task-def="), _show),
    "dump": (
        options(
            "-g --global, -t --tasks, -l --legacy, -f --flows, -r --raw --raw-format, "
            "-p --pretty --pretty-print, -s --sort"
        ),
        _dump,
    ),
    "cat-log": (
        options(
            "-f --file=, -m --mode=, -r --rotation=, -s -t --submit-number --try-number=, "
            "-o --force-remote, --prepend-path"
        ),
        _cat_log,
    ),
    "ping": ((), _ping),
    "scan": (options("-n --name=, -t --format="), _scan),
}


# ---- `cylc workflow-state`: waits until a task has a status, an output or a message ----

POLLS_MAX = 12
INTERVAL_SECONDS = 5.0
OPTIONS = options(
    "--max-polls=, --interval=, -s --offset=, --flow=, --triggers, --messages, --pretty, "
    "--old-format, -d --alt-cylc-run-dir --run-dir=, -t --task=, -p --point=, "
    "-T --task-point, -S --status=, -O -m --message --output="
)


def workflow_state(said: Arguments) -> tuple[Iterator[str], int]:
    """Polls for `cylc workflow-state`; returns the lines to print, and the exit status.

    The status is 1 if nothing was found in time.
    """
    ids = _with_old_options(said, read_ids("workflow-state", said.words[:1]))
    polls = _number(said, "max-polls", POLLS_MAX)
    interval = _number(said, "interval", INTERVAL_SECONDS)
    style = "{name}, {point}, {state}" if "old-format" in said else "{id}:{state}"
    for number in itertools.count(1):
        if found := _found(ids, said):
            return (style.format_map(task) for task in found), 0
        if number >= polls:
            break
        time.sleep(interval)
    return iter(()), 1


def _found(ids: Ids, said: Arguments) -> list[Document]:
    """Returns the tasks that are as asked for right now. There are none if the run or a worker
    is not there: it may still come."""
    flow = said.last("flow")
    try:
        document = look(
            ids.workflow,
            "workflow-state",
            id=ids.within[0] if ids.within else "",
            offset=said.last("offset"),
            flow=int(flow) if flow.isdecimal() else None,
            triggers="triggers" in said,
            messages="messages" in said or "message" in said,
        )
    except (NotFound, Unavailable):
        return []
    tasks = document.get("tasks")
    return tasks if isinstance(tasks, list) else []


def _number(said: Arguments, option: str, default: float) -> float:
    text = said.last(option)
    try:
        return float(text) if text else default
    except ValueError:
        raise BadUsage(
            f"cylc workflow-state: --{option} takes a number, not {text!r}"
        ) from None


def _with_old_options(said: Arguments, ids: Ids) -> Ids:
    """Returns the ids that `--task --point --status --message` of older scripts mean, else
    those given."""
    task, point = said.last("task"), said.last("point")
    if "task-point" in said:
        point = os.environ.get("CYLC_TASK_CYCLE_POINT", "")
    selector = said.last("status") or said.last("message")
    if not (task or point or selector):
        return ids
    within = f"{point or '*'}/{task or '*'}"
    return Ids(ids.workflow, (f"{within}:{selector}" if selector else within,))


# ---- how a run is asked: inside a job through its worker, elsewhere through the store ----


def own_run() -> str:
    """Returns the run that this job or handler belongs to; "" where there is none."""
    return os.environ.get("CYLC_WORKFLOW_ID", "")


def run_named(workflow: str) -> str:
    """Returns the run that is meant; the name of this job's workflow means this job's run.

    Raises Refused if nothing is named outside of a job.
    """
    mine = own_run()
    if not workflow or workflow == os.environ.get("CYLC_WORKFLOW_NAME", ""):
        workflow = mine or workflow
    if not workflow:
        raise Refused("which workflow? Name it: cylc VERB WORKFLOW//POINT/NAME")
    return workflow


def give(workflow: str, command: Command, *, wait: bool = True) -> Document:
    """Gives a run a command; returns its answer, or raises a refusal.

    Inside a job, without `wait`, the answer comes when the command is stored, not when it is
    obeyed.
    """
    from tidewheel.core.operator.verbs import command_text
    from tidewheel.runners.messages.client import call_run

    run, body = run_named(workflow), json.loads(command_text(command))
    if job := own_job():
        if run != own_run():
            raise Refused(
                f"a job of {own_run()} can read {run}, but can change only its own run"
            )
        return call_run(*job, {"command": body, "wait": wait})

    async def ask(client: AsyncClient) -> Document:
        return (await client.runs.give(run, command)).document

    return _outside(ask)


def look(workflow: str, name: str, **arguments: object) -> Document:
    """Returns the view called ``name`` of a run; the view `runs` is of all runs."""
    from tidewheel.runners.messages.client import call_run

    arguments = {"run": run_named(workflow) if name != "runs" else "", **arguments}
    if job := own_job():
        return call_run(*job, {"look": name, "arguments": arguments})
    return _outside(lambda client: client.runs.look(name, **arguments))


def own_job() -> tuple[Path, str] | None:
    """Returns the folder of this job and the secret by which its worker knows it; None
    outside of a job."""
    directory, secret = os.environ.get("TIDEWHEEL_JOB_DIR"), os.environ.get("TIDEWHEEL_SECRET")
    return (Path(directory), secret) if directory and secret else None


def _outside(ask: Callable[[AsyncClient], Awaitable[Document]]) -> Document:
    from tidewheel.cli.session import ask_client
    from tidewheel.wiring.stores import store_to_read

    with store_to_read() as where:
        return ask_client(where, ask)
