"""A SIP definition's settings as nested sections: what holds for each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidewheel.cli.definitions import Definition
    from tidewheel.cli.pages.settings import Tree
    from tidewheel.formats.sip.judging import Judgement
    from tidewheel.formats.sip.model import Dependency, Resource, Stage
    from tidewheel.formats.sip.places import Json


def sip_tree(definition: Definition) -> Tree:
    """The workflow, its parameters, and each stage as it would run."""
    from tidewheel.core.graph.findings import Findings
    from tidewheel.services.definitions.sip import load_sip_file

    judged = load_sip_file(definition.path, definition.load_options(), Findings()).judgement
    found = judged.definition if judged is not None else None
    if judged is None or found is None:
        return {}
    stages: Tree = {stage.id: _stage(stage, judged) for stage in found.stages}
    parameters: Tree = {
        spec.name: _text(spec.default) if spec.has_default else "" for spec in judged.specs
    }
    return {
        "id": found.id,
        "version": found.version,
        "parameters": parameters,
        "stages": stages,
    }


def _stage(stage: Stage, judged: Judgement) -> Tree:
    from tidewheel.quantities import show_duration

    rendered = judged.rendered.get(stage.id)
    tree: Tree = {"version": stage.version, "type": stage.type.value}
    if stage.timeout_seconds is not None:
        tree["timeout"] = show_duration(stage.timeout_seconds)
    tree["dependencies"] = "\n".join(_dependency(one) for one in stage.dependencies)
    tree["resources_required"] = "\n".join(_resource(one) for one in stage.resources)
    if rendered is None:
        return tree
    tree["parameters"] = {name: _text(value) for name, value in rendered.parameters.items()}
    tree["args"] = _text(rendered.args)
    for name in ("compose", "script"):
        if text := getattr(rendered, name):
            tree[name] = text.rstrip()
    if rendered.command is not None:
        tree["command"] = _text(list(rendered.command))
    return tree


def _dependency(dependency: Dependency) -> str:
    from tidewheel.formats.sip.model import PRESENT, ObjectDependency

    if isinstance(dependency, ObjectDependency):
        return f"{dependency.name} {PRESENT}"
    return f"{dependency.stage} {dependency.condition.value}"


def _resource(resource: Resource) -> str:
    from tidewheel.formats.sip.model import BufferNeeded, CpuNeeded, MemoryNeeded
    from tidewheel.quantities import show_size

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


def _text(value: Json) -> str:
    from tidewheel.formats.sip.places import text_of_value

    return text_of_value(value)
