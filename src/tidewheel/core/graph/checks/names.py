"""Reports names that the graph uses and nobody defines, and tasks that it does not use."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from operator import attrgetter

from tidewheel.core.graph.definition import (
    ROOT_NODE,
    Atom,
    NodeDef,
    RunMode,
    WorkflowDef,
    XtriggerTerm,
    leaves,
)
from tidewheel.core.graph.findings import (
    NOWHERE,
    Findings,
    Lookalikes,
    Position,
    Severity,
    nearest,
)
from tidewheel.core.graph.graph import Graph, atoms_of
from tidewheel.core.graph.outputs import STANDARD

_STANDARD = frozenset(STANDARD)
NAMED_MAX = 10  # names in one message

IMPLICIT_TASKS = "implicit-tasks"  # the finding's code
WALL_CLOCK = "wall_clock"  # known without a definition, as in Cylc: no offset


def check_references(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Reports outputs and xtriggers that the graph uses and that nobody defines."""
    _check_outputs(workflow, graph, findings)
    _check_xtriggers(workflow, graph, findings)


def some(names: Iterable[str]) -> str:
    """Returns a text with the first few names, and how many more there are."""
    listed = list(names)
    text = ", ".join(listed[:NAMED_MAX])
    more = len(listed) - NAMED_MAX
    return f"{text} and {more} more" if more > 0 else text


def _check_outputs(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    asked: dict[tuple[str, str], Position] = {}
    for mark in workflow.marks:
        if mark.output not in _STANDARD:
            asked.setdefault((mark.node, mark.output), mark.position)
    for arrow in graph.arrows:
        condition = arrow.condition
        if type(condition) is Atom and condition.output in _STANDARD:  # as nearly all
            continue
        for leaf in leaves(condition):
            if type(leaf) is Atom and leaf.output not in _STANDARD:
                asked.setdefault((leaf.node, leaf.output), arrow.position)
    for (name, output), position in asked.items():
        declared = dict(graph.nodes[name].definition.outputs)
        if output in declared:
            continue
        if findings.is_full:
            return
        near = nearest(output, [*STANDARD, *declared])
        findings.error(
            "unknown-output",
            f"{name} has no output {output!r}",
            (f"did you mean {near!r}? Or declare it" if near else "declare it")
            + f": [runtime] [[{name}]] [[[outputs]]] {output} = a message of its job",
            position,
        )


def xtriggers_asked(workflow: WorkflowDef) -> dict[str, Position]:
    """Returns the xtriggers that tasks wait for, each with where it is first named."""
    asked: dict[str, Position] = {}
    for section in workflow.sections:
        for arrow in section.arrows:
            if type(arrow.condition) is Atom:  # as nearly all
                continue
            for leaf in leaves(arrow.condition):
                if isinstance(leaf, XtriggerTerm):
                    asked.setdefault(leaf.label, arrow.position)
    return asked


def _check_xtriggers(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    for label, position in xtriggers_asked(workflow).items():
        if label not in workflow.xtriggers and label != WALL_CLOCK:
            near = nearest(label, workflow.xtriggers)
            findings.error(
                "unknown-xtrigger",
                f"the xtrigger @{label} is not defined",
                f"did you mean @{near}?" if near else "define it under [[xtriggers]]",
                position,
            )
            continue
        defined = workflow.xtriggers.get(label)
        function = label if defined is None else defined.function
        if graph.cycling.is_integer and function == WALL_CLOCK:
            findings.error(
                "clock-without-dates",
                f"@{label} waits for the clock, and the points of this workflow are numbers",
                "use date-time cycling, or another xtrigger",
                position,
            )
    for label, known in workflow.xtriggers.items():
        if label in graph.nodes:
            findings.error(
                "xtrigger-is-a-task",
                f"{label} is both an xtrigger and a task of the graph",
                f"write @{label} in the graph, or rename one of them",
                known.position,
            )


def check_implicit(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Reports tasks that are in the graph and not defined.

    The root family may give them a script; without one they would succeed without doing
    anything (what root runs before or after each task is not their work), and one that is a
    letter off a defined name is probably misspelt.
    """
    implicit = [node.name for node in graph.nodes.values() if node.implicit]
    if not implicit:
        return
    lookalikes = Lookalikes((*workflow.nodes, *workflow.families))
    meant = {name: found for name in implicit if (found := lookalikes.of(name))}
    root = workflow.root
    has_work = bool(root.scripts.main or root.workflow) or root.run_mode != RunMode.LIVE
    idle = set() if has_work else set(implicit)
    wrong = {*meant, *idle} if workflow.nodes else set()
    allowed = workflow.implicit_nodes_allowed
    if allowed is False or (allowed is None and graph.policy.implicit_nodes is Severity.ERROR):
        wrong = set(implicit)
    if wrong:
        report = findings.warning if allowed else findings.error
        _report_implicit(
            workflow, graph, [name for name in implicit if name in wrong], meant, idle, report
        )
    rest = [name for name in implicit if name not in wrong]
    if rest and not allowed:
        _report_implicit(workflow, graph, rest, meant, idle, findings.warning)


def gives_something_to_do(node: NodeDef) -> bool:
    """Says whether a node has a script or is a run, or says on purpose that it does nothing."""
    scripts = node.scripts
    has_work = bool(scripts.pre or scripts.main or scripts.post or node.workflow)
    return has_work or node.run_mode != RunMode.LIVE


def _report_implicit(
    workflow: WorkflowDef,
    graph: Graph,
    names: list[str],
    meant: Mapping[str, str],
    idle: Container[str],
    report: Callable[[str, str, str, Position], None],
) -> None:
    told = (
        f"{name} (did you mean {meant[name]}?)" if name in meant else name for name in names
    )
    ends = "run only the script of root"
    if names[0] in idle:
        ends = "succeed without doing anything"
        if gives_something_to_do(workflow.root):
            ends = "run no script, only what root runs before or after each"
    is_one = len(names) == 1
    otherwise = "or set [scheduler] allow implicit tasks = True"
    if workflow.implicit_nodes_allowed:
        otherwise = "if it is to do nothing, give it run mode = skip there"
    report(
        IMPLICIT_TASKS,
        f"not defined under [runtime]: {some(told)}; {'it' if is_one else 'they'} would {ends}",
        f"correct the name, or define it: [runtime] [[{names[0]}]]; {otherwise}",
        _place_of(workflow, graph, names[0]),
    )


def check_unused(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Reports tasks and xtriggers that are defined and not in the graph."""
    asked = xtriggers_asked(workflow)
    for label, known in workflow.xtriggers.items():
        if label not in asked:
            findings.warning(
                "unused-xtrigger",
                f"the xtrigger {label} is defined, but nothing in the graph waits for it",
                f"write @{label} in the graph, or remove the definition",
                known.position,
            )
    unused = [name for name in workflow.nodes if name not in graph.nodes]
    if unused:
        them = "it" if len(unused) == 1 else "them"
        findings.warning(
            "unused-tasks",
            f"{some(unused)} {'is' if len(unused) == 1 else 'are'} defined but nothing in the "
            f"graph runs {them}",
            f"name {them} in the graph, or remove the definition",
            workflow.nodes[unused[0]].position,
        )


def _place_of(workflow: WorkflowDef, graph: Graph, name: str) -> Position:
    for section in workflow.sections:
        for placement in section.placements:
            if placement.node == name:
                return placement.position
    return mentions_of(graph).get(name, NOWHERE)  # it is only named with an offset


def mentions_of(graph: Graph) -> dict[str, Position]:
    """Returns where each task is first named in an arrow."""
    places: dict[str, Position] = {}
    for arrow in graph.arrows:
        for leaf in leaves(arrow.condition):
            if isinstance(leaf, Atom):
                places.setdefault(leaf.node, arrow.position)
        for target in arrow.targets:
            places.setdefault(target, arrow.position)
    return places


def check_inputs(graph: Graph, findings: Findings) -> None:
    """Reports inputs from a task that is not before the one that takes them."""
    for name, inputs in graph.inputs.items():
        node = graph.nodes.get(name)
        if node is None:
            continue  # it is not in the graph, which has a finding of its own
        before = {
            (atom.node, atom.offset)
            for index in node.arrows
            for atom in atoms_of(graph.arrows[index].condition, graph.families)
        }
        names = sorted({name for name, _ in before})
        others = f", or take it from {' or '.join(names)}" if names else ""
        for one in inputs:
            if (one.node, one.offset) not in before:
                parent = one.text.partition(".")[0]
                seen = (
                    f"{name} takes {one.variable} from {one}, but {parent} is not before "
                    f"{name} in the graph"
                )
                hint = f"add {parent} => {name} to the graph{others}"
                findings.error("bad-input", seen, hint, node.definition.position)


# What a task that is a run of another workflow names.

FOLDER = "./"  # so begins the name of a folder of the definition


def is_folder(workflow: str) -> bool:
    """Says whether a setting `workflow` names a folder of the definition itself."""
    return workflow in (".", "..") or workflow.startswith((FOLDER, "../", "/", "~"))


def folder_problem(workflow: str) -> str:
    """Returns why this names no folder below that of the definition; "" if it does."""
    parts = workflow.removeprefix(FOLDER).removesuffix("/").split("/")
    if parts in ([""], ["."]):
        return "a workflow that runs itself never ends; name a folder below it, such as ./post/"
    if any(part in ("", ".", "..") or part.startswith("~") for part in parts):
        return "name a folder below that of this definition, such as ./post/"
    return ""


def check_nested(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Reports tasks that would be runs of what cannot be run, and those that say twice what
    they do."""
    for name, known in graph.nodes.items():
        node = known.definition
        if not node.workflow:
            continue
        if is_folder(node.workflow) and (problem := folder_problem(node.workflow)):
            seen = f"{name} cannot be a run of {node.workflow}"
            findings.error("bad-workflow", seen, problem, node.position)
        if node.workflow == workflow.name or node.workflow.startswith(f"{workflow.name}/"):
            findings.warning(
                "runs-itself",
                f"{name} is a run of {node.workflow}, which looks like this workflow",
                "a workflow that contains itself fails when nested too deeply; name "
                "another one",
                node.position,
            )
        if node.scripts.main:
            findings.error(
                "two-works",
                f"{name} has both a script and workflow = {node.workflow}",
                "leave one of them out: a run of a workflow has no script",
                node.position,
            )
        _check_of_jobs(name, node, workflow.root, findings)


# What only jobs have, by the field of a node: its name in flow.cylc. What root gives to all
# tasks is not meant for those that are runs.
OF_JOBS = {
    "scripts.init": "init-script",
    "scripts.env": "env-script",
    "scripts.pre": "pre-script",
    "scripts.post": "post-script",
    "scripts.on_error": "err-script",
    "scripts.on_exit": "exit-script",
    "environment": "[environment]",
    "place.platform": "platform",
    "place.directives": "[directives]",
    "place.work_subdirectory": "work sub-directory",
    "place.batch_system": "[job]batch system",
    "place.remote_host": "[remote]host",
}
RUN_WITHOUT_JOB = "run-without-job"


def is_of_jobs(setting: str) -> bool:
    """Says whether only jobs have a setting, such as `script` or `[environment]NAME`."""
    section, bracket, _ = setting.rpartition("]")
    return (section + bracket or setting) in ("script", *OF_JOBS.values())


def _check_of_jobs(name: str, node: NodeDef, root: NodeDef, findings: Findings) -> None:
    """Reports what a task says about its job although it is a run."""
    for path, item in OF_JOBS.items():
        own = attrgetter(path)
        if own(node) not in (own(root), own(ROOT_NODE)):
            findings.error(
                RUN_WITHOUT_JOB,
                f"{item} of {name} has no effect: {name} is a run of {node.workflow}, and has "
                "no job",
                f"set it in {node.workflow}, and remove it here; a run gets values by [inputs]",
                node.position,
            )
