"""Prints a run: its state, its tree, the commands it was given, and why tasks do not run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, cast

from tidewheel.cli.output import (
    coloured,
    note,
    plural,
    safe,
    say,
    say_columns,
    say_found,
)
from tidewheel.cli.pages.format import (
    SHOWN_MAX,
    Columns,
    Document,
    at,
    bar,
    commands_with_effects,
    counts_text,
    diff_lines,
    documents,
    fact,
    flows_text,
    moment,
    more_text,
    run_cell,
    say_lines,
    say_more,
    say_some,
    section,
    shown_page,
    stage_id,
    state_cell,
    texts,
    took,
    value_text,
)
from tidewheel.cli.verbs import TABLE
from tidewheel.core.operator.verbs import Hold, Reload, Set, Stop
from tidewheel.core.operator.views import ABORTED_BY, REOPENED_STATUSES
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.quantities import show_duration
from tidewheel.views.run_facts import kept_text

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Given

POINTS_SHOWN_MAX = 12
NO_SCHEDULER = "no scheduler drives it yet; start one: tidewheel scheduler"
GOES_ON = ("running", "paused", "waiting for release", "stopping")


def say_runs(page: Document, workflow: str | None, *, matching: bool = False) -> None:
    """Prints the list of runs, all or those of one workflow, or those that fit a filter."""
    of = f" of {safe(workflow)}" if workflow else ""
    columns: Columns = {
        "RUN": "name",
        "NUMBER": "number",
        "STATUS": run_cell,
        "SCHEDULER": lambda one: "yes" if one["driven"] else "no",
        "CHANGED": at("updated_at"),
        "REASON": _list_reason,
    }
    empty = f"there are no runs{of} yet; start one: tidewheel run DIR"
    if matching:
        empty = f"no run{of} fits the filter"
    say_found(documents(page, "runs"), columns, empty)


def _list_reason(run: Document) -> str:
    if waits := texts(run, "waits"):
        return f"it waits for {'; '.join(waits)}"
    if run["offered"] and not run["driven"]:
        return _who_takes_it(run)
    if run["status"] in GOES_ON and not run["driven"]:
        return f"its scheduler is gone; resume it: tidewheel run {quote(str(run['name']))}"
    return _reason(run)


def _reason(run: Document) -> str:
    """Returns why a run has its status; "" if the status itself says it."""
    reason = str(run["reason"]).removeprefix(f"{run['status']}: ")
    return "" if reason == run_cell(run).word.partition(" (")[0] else reason


def stall_line(stall: Document) -> str:
    """Returns since when a run is stalled and, if that is set, when it stops."""
    left = _in_how_long(stall)
    ends = f"; it stops at {moment(stall, 'until')}{left}" if left else ""
    return f"since {moment(stall, 'since')}{ends}"


def _who_takes_it(run: Document) -> str:
    """Returns what has to happen so that an offered run goes on: a scheduler takes it, or
    somebody carries it on."""
    if run["status"] in REOPENED_STATUSES:
        kept = kept_text(cast("int", run.get("kept", 0)))
        said = kept or "it resumes when a scheduler takes it"
        return f"{said}; resume it: tidewheel run {quote(str(run['name']))}"
    return NO_SCHEDULER


def say_run(page: Document) -> None:
    """Prints the page of one run, as `tidewheel show RUN` does."""
    page = shown_page(page)
    run = cast("Document", page["run"])
    say(f"run {safe(run['name'])}  {coloured(run_cell(run))}")
    _say_facts(run, page)
    _say_points(page)
    active = documents(page, "active")
    say_some("active", active[:SHOWN_MAX], ACTIVE_STAGES if page.get("stages") else ACTIVE)
    say_more(len(active))
    _say_causes(run, page)
    lost = documents(page, "lost")
    flows = () if page.get("stages") else documents(page, "flows")
    say_lines("will not run", [f"  {safe(one['chain'])}" for one in lost[:SHOWN_MAX]])
    say_more(len(lost))
    if len(flows) > 1 and not page.get(
        "stages"
    ):  # every run begins with one, so one is no news
        say_some("flows", flows, FLOWS)
    if held := texts(page, "held"):
        section("held")
        say(f"  {safe(', '.join(held[:SHOWN_MAX]))} {more_text(len(held))}".rstrip())


def say_why_run(page: Document) -> None:
    """Prints why a run does not go on, as `tidewheel why RUN` does."""
    page = shown_page(page)
    run = cast("Document", page["run"])
    say(f"run {safe(run['name'])}  {coloured(run_cell(run))}")
    fact("because", _reason(run))
    _say_who_drives(run, page)
    if not _say_causes(run, page):
        say("  no task of this run needs action")


def _say_causes(run: Document, page: Document) -> bool:
    """Prints what keeps the run, failures that are alike in one line; of a run that has
    completed what failed in it. Returns whether there is anything of it."""
    from tidewheel.cli.pages.format import other_causes

    groups, others = documents(page, "groups"), other_causes(page)
    if groups or others:
        is_stalled = run["status"] == "stalled"
        stays = "failed" if run["status"] == "completed" else "will not continue without action"
        section("stalled because" if is_stalled else stays)
    for group in groups[:SHOWN_MAX]:
        say(f"  {safe(group['text'])}")
        for line in commands_with_effects(texts(group, "commands")):
            say(f"    {safe(line)}")
    for one in others[:SHOWN_MAX]:
        say_reasons(documents(one, "reasons"))
    say_more(len(others))
    return bool(groups or others)


def _say_facts(run: Document, page: Document) -> None:
    bounds = cast("Document", page["bounds"])
    fact("because", _reason(run))
    fact("number", run["number"])
    if run.get("parent"):
        task = str(run["name"]).removeprefix(f"{run['parent']}/")
        fact("task", f"{task} of {run['parent']}")
    fact("folder", run["folder"])
    _say_who_drives(run, page)
    fact("created", moment(run, "created_at"))
    fact("ended", moment(run, "ended_at"))
    if page.get("stages"):
        fact("stages", counts_text(page))
        return
    fact("points", f"{bounds['start']} to {bounds['final'] or 'no end'}")
    if bounds["oldest"] is not None:
        limit = f", limit {bounds['runahead_limit']}" if bounds["runahead_limit"] else ""
        fact("runahead", f"oldest point {bounds['oldest']}{limit}")
    fact("stops", _stop_text(bounds))
    fact("holds after", bounds["hold_after"])
    fact("tasks", counts_text(page))


def _say_who_drives(run: Document, page: Document) -> None:
    """Prints what the run waits for, which scheduler drives it, since when it is stalled."""
    scheduler = cast("Document | None", run["scheduler"])
    for wait in documents(page, "waits"):
        fact("waits", wait["text"])
    if run["driven"] and scheduler is not None:
        fact("scheduler", f"process {scheduler['pid']} on {scheduler['host']}")
    elif run["offered"]:
        fact("scheduler", _who_takes_it(run))
    elif run["status"] != "completed" and not str(run["reason"]).startswith(ABORTED_BY):
        option = " --stall-timeout 1h" if run["status"] == "stalled" else ""
        fact("scheduler", f"none; resume it: tidewheel run {quote(str(run['name']))}{option}")
    if stall := cast("Document | None", page["stall"]):
        fact("stalled", stall_line(stall))


def _stop_text(bounds: Document) -> str:
    """Returns where the run will stop, and how many points are left until then (R001-31); ""
    if no stop is set."""
    words = []
    if bounds["stop"] is not None:
        to_go = bounds["points_to_stop"]
        left = f"{plural(cast('int', to_go), 'point')} to go" if to_go else "reached"
        words.append(f"after point {bounds['stop']}" + ("" if to_go is None else f" ({left})"))
    if bounds["stop_after"] is not None:
        words.append(f"after task {bounds['stop_after']}")
    return ", ".join(words)


def _say_points(page: Document) -> None:
    points = documents(page, "points")
    if not points:
        return
    section("progress")
    if (earlier := len(points) - POINTS_SHOWN_MAX) > 0:
        say(f"  {plural(earlier, 'earlier point')}: --json shows all")
    columns: Columns = {
        "POINT": "point",
        "DONE": lambda one: f"{one['done']}/{one['tasks']}",
        "": lambda one: bar(cast("int", one["done"]), cast("int", one["tasks"])),
        "TASKS": counts_text,
    }
    if page.get("stages"):
        columns = {"DONE": columns["DONE"], "": columns[""], "STAGES": counts_text}
    say_columns(points[-POINTS_SHOWN_MAX:], columns, indent=2)


def _flow_state(flow: Document) -> str:
    count = cast("int", flow["tasks"])
    if flow["stopped"]:
        return f"stopped, {count} left" if count else "stopped"
    return str(count) if count else "ended"


ACTIVE: Columns = {
    "TASK": "id",
    "STATE": state_cell,
    "FLOWS": flows_text,
    "SUBMIT": lambda one: f"{one['submit']:02d}",
    "SINCE": lambda one: moment(one, "started_at") or moment(one, "submitted_at"),
    "WORKER": "worker",
}
ACTIVE_STAGES: Columns = {
    "STAGE" if name == "TASK" else name: cell
    for name, cell in ACTIVE.items()
    if name != "FLOWS"
}
FLOWS: Columns = {"FLOW": "flow", "TASKS": _flow_state, "UNTIL": "until", "REMARK": "text"}


# ---- the commands that it was given ----


def say_history(page: Document) -> None:
    """Prints the commands that the run was given, newest first."""
    columns: Columns = {
        "NUMBER": "number",
        "TIME": at("at"),
        "WHO": "who",
        "COMMAND": _command_text,
        "OUTCOME": _became,
    }
    empty = "no command was given to this run yet"
    say_found(documents(page, "commands"), columns, empty)


def _command_text(one: Document) -> str:
    """Returns a command as it might be typed, such as `trigger 1/foo flow=new`."""
    arguments = dict(cast("Mapping[str, object]", one["arguments"]))
    words = [str(one["verb"]), *cast("list[str]", arguments.pop("ids", []))]
    for name, value in arguments.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words.append(name if value is True else f"{name}={text}")
    return " ".join(words)


def _became(one: Document) -> str:
    if one["refused"] is not None:
        return f"refused: {one['refused']}"
    return "waits" if one["answered_at"] is None else "done"


# ---- the tree ----

TEE, CORNER, BAR, GAP = "├─ ", "└─ ", "│  ", "   "


def say_tree(page: Document) -> None:
    """Prints a run as a tree: points, below them families, tasks and submissions."""
    page = shown_page(page)
    points = documents(page, "points")
    say(f"{safe(page['run'])}  {safe(run_cell(page).word)}")
    if left_out := cast("int", page["left_out"]):
        note(f"{plural(left_out, 'earlier point')} left out: --all shows them")
    if not points:
        note("there is nothing to show yet")
    for point in points:
        head = "" if page.get("stages") else f"{safe(point['point'])}  "
        say(f"{head}{counts_text(point)}")
        for line in _lines(documents(point, "children"), ""):
            say(line)


def _lines(children: object, before: str) -> Iterator[str]:
    found = list(cast("list[Document]", children))
    for number, one in enumerate(found):
        last = number == len(found) - 1
        head = f"{before}{CORNER if last else TEE}"
        if one["family"]:
            yield f"{head}{safe(one['name'])}"
            yield from _lines(one["children"], before + (GAP if last else BAR))
        else:
            yield f"{head}{_task_text(one)}"


def _task_text(task: Document) -> str:
    words = [safe(task["name"]), coloured(state_cell(task))]
    flows = flows_text(task)
    if flows not in ("", "1", "none"):
        words.append(f"flow {flows}")
    submissions = [
        f"[{one['submit']:02d} {one['status']} {took(one)}".rstrip() + "]"
        for one in documents(task, "submissions")
    ]
    return "  ".join([*words, " ".join(submissions)] if submissions else words)


# ---- reasons: what it is, whether it passes, and the command that helps ----


def say_why(page: Document) -> None:
    """Prints why each task that was asked for does not run."""
    page = shown_page(page)
    for number, task in enumerate(documents(page, "tasks")):
        if number:
            say()
        flows = flows_text(task)
        of_flows = f"  flow {flows}" if flows not in ("", "none") else ""
        say(f"{safe(task['id'])}  {coloured(state_cell(task))}{of_flows}")
        reasons = documents(task, "reasons")
        say_reasons(reasons)
        if not reasons:
            say("  nothing keeps it from running")


def say_reasons(reasons: Sequence[Document]) -> None:
    for line in reason_lines(reasons):
        say(line)


def reason_lines(reasons: Sequence[Document]) -> Iterator[str]:
    for one in reasons:
        stays = " (needs action)" if one.get("needs_action") else ""
        passes = f" (clears on its own{_in_how_long(one)})" if one["passes"] else stays
        yield f"  {safe(one['text'])}{passes}"
        yield from (
            f"    {safe(line)}" for line in commands_with_effects(texts(one, "commands"))
        )


def _in_how_long(page: Document) -> str:
    """Returns how long it is until the time `until`, by this machine's clock; "" if there is
    none or it has passed."""
    if not page.get("until"):
        return ""
    left = datetime.fromisoformat(str(page["until"])).timestamp() - time.time_ns() / 1e9
    return f", in {show_duration(left)}" if left > 0 else ""


# ---- what a command did, as the scheduler answered it, or what it would do ----

FORGOTTEN = (
    "is not in the pool: it now counts as never run, and runs again if a task that it needs "
    "runs again, or if you trigger it"
)
STILL_TO_RUN = "was set, but still runs when its prerequisites are satisfied"
# Keys of an answer that lines below are about; any other is shown as it is.
_KNOWN = frozenset(
    {"tasks", "submitted", "killed", "polled", "comes_back", "forgotten", "notices", "status"}
    | {"stages", "unchanged", "refused", "still_to_run"}
    | {"definition", "changed", "broadcasts", "message", "task", "submit", "stops_at"}
)


def answer_lines(given: Given) -> Iterator[str]:
    """Yields what a command did: task by task where there are any, else in one sentence."""
    answer = shown_page(given.answer)
    if answer.get("kept"):
        yield (
            f"{safe(given.run)} is {safe(answer['status'])}, and no scheduler drives it: the "
            f"command {given.verb} is kept, and is carried out when the run resumes"
        )
        yield f"  resume it: {safe(answer['next'])}"
        return
    named = answer.get("tasks")
    tasks = named if isinstance(named, Mapping) else {}
    if answer.get("stages"):  # in no flow that anybody has heard of
        tasks = dict.fromkeys(map(stage_id, tasks))
    yield from _task_lines(given, answer, tasks)
    if not tasks:
        yield f"{safe(given.run)} {_became_of_run(given)}"
    if others := [one for one in _list(answer, "submitted") if one not in tasks]:
        yield f"  now runs: {_some(others)}"
    if back := _list(answer, "comes_back"):
        yield f"  no longer lost if it succeeds: {_some(back)}"
    for row in cast("list[Document]", answer.get("broadcasts") or [])[:SHOWN_MAX]:
        became = "cancelled" if row["value"] is None else f"= {row['value']}"
        where = f"{row['point']}/{row['namespace']}"
        yield "  " + safe(f"{where}  {row['setting']} {became}")
    for notice in _news(answer, tasks)[:SHOWN_MAX]:
        yield f"  {safe(notice)}"
    for name, value in answer.items():
        if name not in _KNOWN and value not in (None, "", [], {}):
            yield f"  {safe(name.replace('_', ' '))}: {safe(value_text(value))}"


def undone_text(given: Given) -> str:
    """Returns what a command could not act on of all that it names; "" if there is nothing."""
    refused = _list(shown_page(given.answer), "refused")
    return f"{given.verb} had no effect on {_some(refused)}" if refused else ""


def _task_lines(given: Given, answer: Document, tasks: Mapping[str, object]) -> Iterator[str]:
    submitted = _list(answer, "submitted")
    unchanged = cast("Mapping[str, str]", answer.get("unchanged") or {})
    told = {task_id: f"is unchanged: {why}" for task_id, why in unchanged.items()}
    told |= dict.fromkeys(_list(answer, "still_to_run"), STILL_TO_RUN)
    told |= dict.fromkeys(_list(answer, "forgotten"), FORGOTTEN)
    if answer.get("stages"):
        told = {stage_id(task_id): became for task_id, became in told.items()}
    refused = _list(answer, "refused")
    shown = sorted(tasks, key=lambda task_id: task_id not in refused)[:SHOWN_MAX]
    for task_id in shown:
        became = _became_of_task(given.verb, tasks[task_id], task_id in submitted)
        if isinstance(given.command, Set) and given.command.values:
            names = ", ".join(one.partition("=")[0].strip() for one in given.command.values)
            became = f"now has the given value of {names}, until its job returns another one"
        yield f"{safe(task_id)} {told.get(task_id, became)}"
    if more := more_text(len(tasks)):
        yield more


def _became_of_task(verb: str, flows: object, runs: bool) -> str:
    where = "" if flows is None else f" in flow {flows}"
    where = " alone (flow none)" if flows == "none" else where
    if runs:
        return f"runs now{where}"
    if verb == "set" and flows is None:
        return "is complete"
    return TABLE[verb].of_task.format(flow=where)


def _became_of_run(given: Given) -> str:
    """Returns what became of the run, with the bound that was asked for, if there was one."""
    did = TABLE[given.verb].of_run.format(run=quote(given.run))
    command = given.command
    if given.answer.get("changed") is False:
        is_reload = isinstance(command, Reload)
        return "continues: the definition is unchanged" if is_reload else "is unchanged"
    if isinstance(command, Stop):
        ends = {
            "at point": command.at_point,
            "after": command.after_task,
            "at": command.at_time,
        }
        if command.flow is not None:
            return f"stops flow {command.flow}"
        if command.at_point == "none":
            return "no longer has a stop point"
        said = [f" {word} {bound}" for word, bound in ends.items() if bound]
        return did + "".join(said) + (f" ({command.mode})" if command.mode != "clean" else "")
    if isinstance(command, Hold) and command.after:
        return f"{did} every task after {command.after}"
    return did


def _news(answer: Mapping[str, object], tasks: Mapping[str, object]) -> list[str]:
    """Returns the notices of an answer that its other lines do not say."""
    known = {f"{one} was triggered" for one in tasks} | {str(answer.get("status"))}
    known |= {f"{one} is active already" for one in tasks}
    said = tuple(f"{one} " for one in known)  # and what may follow
    return [one for one in _list(answer, "notices") if not f"{one} ".startswith(said)]


def _list(answer: Mapping[str, object], name: str) -> list[str]:
    found = answer.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return safe(", ".join(names[:SHOWN_MAX])) + more


# ---- what a command would do: a list, and a drawing of what follows what ----

PREVIEWED_MAX = 50


def say_preview(page: Document) -> None:
    """Prints what a command would change at once, what would then run, in order, and what
    would wait."""
    for line in preview_lines(page):
        if isinstance(line, Title):
            section(line.text)
        else:
            say(line)


class Title(NamedTuple):
    """Holds the heading of the lines that follow it."""

    text: str


def preview_lines(page: Document) -> Iterator[str | Title]:
    """Yields what a command would do, as lines and their headings, for any kind of screen."""
    page = shown_page(page)
    runs = documents(page, "runs")
    if page.get("diff") is not None:
        changed = documents(page, "diff")
        yield Title("definition" if changed else "the definition is the same")
        yield from diff_lines(changed, "now", "reloaded")
    yield f"{safe(page['run'])}: nothing was done. If every job succeeds:"
    yield from (f"  {safe(one)}" for one in texts(page, "notices")[:SHOWN_MAX])
    yield from _change_lines(page)
    if not runs:
        yield "  nothing would run"
    else:
        more = ", and more" if page["cut"] else ""
        yield Title(f"{plural(len(runs), 'job')} would run{more}")
        yield from (f"  {line}" for line in _drawing(page))
    if back := texts(page, "comes_back"):
        yield Title("would no longer be lost")
        yield f"  {safe(', '.join(back[:PREVIEWED_MAX]))}"
    if waits := documents(page, "waits"):
        yield Title("would wait")
        for one in waits[:PREVIEWED_MAX]:
            yield f"  {safe(one['id'])}"
            yield from reason_lines(documents(one, "reasons"))


def _change_lines(page: Document) -> Iterator[str | Title]:
    status = cast("dict[str, str]", page["status"])
    changes = documents(page, "changes")
    if status["before"] != status["after"]:
        yield f"  the run would change from {safe(status['before'])} to {safe(status['after'])}"
    if changes:
        yield Title("would change at once")
        for one in changes[:PREVIEWED_MAX]:
            before, after, made = one["before"], one["after"], texts(one, "made")
            parts = [f"{before} -> {after}"] if before != after else []
            parts += [f"would make {', '.join(made)}"] if made else []
            flows = flows_text(one)
            told = "; ".join(parts) or f"{after}, in flow {flows}"
            if not flows:
                told = told.removesuffix(", in flow ")
            yield f"  {safe(one['id'])}: {safe(told)}"
        if more := more_text(len(changes), PREVIEWED_MAX):
            yield f"  {more}"
    for word in ("killed", "polled"):
        if ids := texts(page, word):
            yield f"  jobs that would be {word}: {safe(', '.join(ids[:PREVIEWED_MAX]))}"


def _drawing(page: Document) -> Iterator[str]:
    """Yields the lines of a tree that has each job below the last of the jobs it runs after."""
    runs = documents(page, "runs")
    children: dict[str, list[Document]] = {}
    seen: set[str] = set()
    for one in runs[:PREVIEWED_MAX]:
        after = [before for before in texts(one, "after") if before in seen]
        children.setdefault(after[-1] if after else "", []).append(one)
        seen.add(str(one["id"]))
    yield from _branch(children, "", "", top=True)
    if more := more_text(len(runs), PREVIEWED_MAX):
        yield more


def _branch(
    children: dict[str, list[Document]], name: str, before: str, *, top: bool = False
) -> Iterator[str]:
    found = children.pop(name, [])
    for number, one in enumerate(found):
        last = number == len(found) - 1
        head = "" if top else CORNER if last else TEE
        flows, others = flows_text(one), texts(one, "after")[:-1]
        where = "alone" if flows == "none" else f"flow {flows}" if flows else ""
        also = f", also after {', '.join(others)}" if others else ""
        yield f"{before}{head}{safe(one['id'])}  {where}{safe(also)}".rstrip()
        deeper = before if top else before + (GAP if last else BAR)
        yield from _branch(children, str(one["id"]), deeper)
