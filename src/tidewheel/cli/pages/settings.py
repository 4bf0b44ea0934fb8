"""Makes nested sections of a definition's settings: what was written, after inheritance.

Values stay as people write them (PT10M, not 600.0), so that what is printed can be read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Union

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.items import FLOW, ItemSpec, SectionSpec
from tidewheel.formats.flow_cylc.names import BadParameter
from tidewheel.formats.flow_cylc.sections import Item, PlacedFindings, Section, parse_sections
from tidewheel.formats.flow_cylc.upgrade import upgrade
from tidewheel.formats.flow_cylc.values import BadValue, plain_text, unquoted
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
from tidewheel.quantities import show_duration, show_size

if TYPE_CHECKING:
    from tidewheel.cli.definitions import Definition
    from tidewheel.formats.sip.model import ForEach, Resource, Stage
    from tidewheel.formats.sip.placeholders import Json
    from tidewheel.formats.sip.validation import Validation

Tree = dict[str, Union[str, "Tree"]]

INDENT = "    "


def config_tree(loaded: LoadedWorkflow) -> Tree:
    """Returns all settings of a workflow.

    Each task and family has also what it inherits, and each task its completion.
    """
    findings = PlacedFindings(loaded.source, Findings())
    root = parse_sections(findings)
    upgrade(root, findings)
    tree: Tree = {
        name: _texts(section)
        for name in FLOW.entries
        if name != "runtime" and (section := root.section(name)) is not None
    }
    _set_points(tree, loaded)
    runtime = root.section("runtime") or Section("runtime", -1)
    return {**tree, "runtime": _runtime(runtime, loaded)}


def path_of(item: str) -> list[str]:
    """Splits the name of an item: `[runtime][foo]script` becomes runtime, foo, script."""
    return [part.strip() for part in re.split(r"[\[\]]+", item) if part.strip()]


def is_known(path: list[str]) -> bool:
    """Says whether a definition could have an item or a section of this path."""
    spec: ItemSpec | SectionSpec | None = FLOW
    for name in path:
        if not isinstance(spec, SectionSpec):
            return False
        spec = spec.entries.get(name) or spec.other
    return spec is not None


def tree_lines(tree: Tree, depth: int = 0) -> Iterator[str]:
    """Yields settings as lines of a flow.cylc; in each section, items stand before sections."""
    lead = INDENT * depth
    for name, value in tree.items():
        if isinstance(value, str) and "\n" not in value:
            yield f"{lead}{name} = {value}".rstrip()
        elif isinstance(value, str):
            yield f'{lead}{name} = """'
            yield from indent(value, lead + INDENT).split("\n")
            yield f'{lead}"""'
    for name, value in tree.items():
        if not isinstance(value, str):
            brackets = depth + 1
            yield f"{lead}{'[' * brackets}{name}{']' * brackets}"
            yield from tree_lines(value, depth + 1)


def _texts(section: Section) -> Tree:
    return {
        name: _text(entry) if isinstance(entry, Item) else _texts(entry)
        for name, entry in section.entries.items()
    }


def _text(item: Item) -> str:
    """Returns the text of an item; of a graph that is written in several pieces, all of
    them."""
    texts = []
    piece: Item | None = item
    while piece is not None:
        texts.append(_plain(piece.text))
        piece = piece.earlier
    return "\n".join(reversed(texts))


def _plain(raw: str) -> str:
    try:
        text = plain_text(raw)
        if "\n" in text:  # the indentation within matters, that of the whole does not
            text = dedent(unquoted(raw)).strip("\n").rstrip()
    except BadValue:
        return raw
    return text


def _set_points(tree: Tree, loaded: LoadedWorkflow) -> None:
    """Replaces the initial and final point as written (`now`, relative) by those they stand
    for."""
    scheduling = tree.get("scheduling")
    if loaded.graph is None or not isinstance(scheduling, dict):
        return
    cycling = loaded.graph.cycling
    points = {"initial cycle point": cycling.initial, "final cycle point": cycling.final}
    for name, point in points.items():
        if name in scheduling and point is not None:
            scheduling[name] = cycling.style.text(point)


def _runtime(runtime: Section, loaded: LoadedWorkflow) -> Tree:
    own: dict[str, Tree] = {}
    for section in runtime.sections():
        with suppress(BadParameter):
            for name, _ in list(loaded.settings.parameters.expand_heading(section.name)):
                own[name] = _merged(own.get(name, {}), _texts(section))
    used = loaded.graph.nodes if loaded.graph is not None else {}
    known = {name: node.lineage for name, node in loaded.settings.nodes.items()}
    implicit = {name: (name, ROOT) for name in used if name not in known}
    return {
        name: _namespace(name, lineage, own, loaded)
        for name, lineage in {**known, **implicit}.items()
    }


def _namespace(
    name: str, lineage: tuple[str, ...], own: Mapping[str, Tree], loaded: LoadedWorkflow
) -> Tree:
    tree: Tree = {}
    for ancestor in reversed(lineage):
        inherited = dict(own.get(ancestor, {}))
        if ancestor != name:
            inherited.pop("inherit", None)
        tree = _merged(tree, inherited)
    definition = loaded.settings.nodes.get(name)
    if definition is not None and definition.environment:
        # With the values of the task's parameters filled in.
        tree["environment"] = dict(definition.environment)
    if loaded.graph is not None and name in loaded.graph.nodes:
        completion = str(loaded.graph.nodes[name].completion)
        tree["completion"] = completion.replace("-", "_")
    return tree


def _merged(below: Tree, above: Tree) -> Tree:
    merged = below | above
    for name, value in above.items():
        before = below.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = _merged(before, value)
    return merged


# ---- a SIP definition: what holds for each stage ----


def sip_tree(definition: Definition) -> Tree:
    """Returns a SIP definition: its id, its parameters, and each stage as it would run."""
    from tidewheel.services.definitions.sip import load_sip_file

    judged = load_sip_file(definition.path, definition.load_options(), Findings()).validation
    found = judged.definition if judged is not None else None
    if judged is None or found is None:
        return {}
    stages: Tree = {stage.id: _stage(stage, judged) for stage in found.stages}
    parameters: Tree = {
        spec.name: _json_text(spec.default) if spec.has_default else "" for spec in judged.specs
    }
    head: Tree = {"id": found.id, "version": found.version}
    return {**head, "parameters": parameters, "stages": stages}


def _stage(stage: Stage, judged: Validation) -> Tree:
    from tidewheel.formats.sip.model import PRESENT, ObjectDependency

    rendered = judged.rendered.get(stage.id)
    tree: Tree = {"version": stage.version, "type": stage.type.value}
    if stage.timeout_seconds is not None:
        tree["timeout"] = show_duration(stage.timeout_seconds)
    tree["dependencies"] = "\n".join(
        f"{one.name} {PRESENT}"
        if isinstance(one, ObjectDependency)
        else f"{one.stage} {one.condition.value}"
        for one in stage.dependencies
    )
    tree["resources_required"] = "\n".join(map(_resource, stage.resources))
    if not stage.is_on:
        tree["when"] = "false"
    if stage.for_each is not None:
        tree["for_each"] = _elements(stage.for_each)
    if rendered is None:
        return tree
    tree["parameters"] = {
        name: _json_text(value) for name, value in rendered.parameters.items()
    }
    tree["args"] = _json_text(rendered.args)
    for name in ("compose", "script"):
        if text := getattr(rendered, name):
            tree[name] = text.rstrip()
    if rendered.command is not None:
        tree["command"] = _json_text(list(rendered.command))
    return tree


def _elements(named: ForEach) -> str:
    from tidewheel.formats.sip.model import ListGiven, ListReturned, SameElements
    from tidewheel.formats.sip.placeholders import parameter_to_come

    match named:
        case ListGiven(items):
            return _json_text(list(items))
        case ListReturned(stage, output):
            return f"{stage}.{output}"
        case SameElements(stage):
            return stage
        case _:
            return parameter_to_come(named.parameter)


def _resource(resource: Resource) -> str:
    from tidewheel.formats.sip.model import BufferNeeded, CpuNeeded, MemoryNeeded

    match resource:
        case CpuNeeded(cores=cores):
            return f"cpu {cores:g}"
        case MemoryNeeded(size=size):
            return f"memory {show_size(size)}"
        case BufferNeeded(size=size, label=label):
            return f"buffer {show_size(size)} {label}".rstrip()
        case _:
            words = ["nodes", str(resource.number), resource.flavour, resource.label]
            return " ".join([*filter(None, words), *["exclusive"][: resource.exclusive]])


def _json_text(value: Json) -> str:
    from tidewheel.formats.sip.placeholders import text_of_value

    return text_of_value(value)
