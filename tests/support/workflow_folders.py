"""Folders with definitions that can be registered and run without any engine."""

from __future__ import annotations

from pathlib import Path

DEFINITION = """\
schema_version: "2.0"
stages:
  - {id: a, version: 1.0.0, type: setup, timeout: 60s, resources_required: []}
  - id: b
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies: [{type: stage, value: a, condition: complete}]
"""
FILES = {
    "stages/a/1.0.0/command.yaml.j2": '[echo, "at {{ site }} with {{ nodes }}"]\n',
    "stages/a/1.0.0/parameters.yaml": 'site: ""\nnodes: 4\n',
    "stages/b/1.0.0/script.sh": "echo done\n",
}
FLOW = """\
[meta]
    title = A tide
    version = 2.1
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a, b]]
        script = true
"""
TEMPLATE = """\
#!jinja2
[meta]
    version = 3.0
[scheduling]
    [[graph]]
        R1 = {{ NAMES | join(" => ") }}
[runtime]
    [[root]]
        script = true
{% for name in NAMES %}
    [[{{ name }}]]
{% endfor %}
"""
PYTHON = """\
from tidewheel import Workflow

flow = Workflow("cycle")
a = flow.task("a", script="true")
b = flow.task("b", script="true")
with flow.cycle("R1"):
    a >> b
"""


def sip_files(name: str = "vis-1.0.0.yaml", **changed: str) -> dict[str, str]:
    """Paths and texts; `changed` by the last part of a path without its dots."""
    files = {name: DEFINITION, **FILES}
    return {
        path: changed.get(path.rpartition("/")[2].replace(".", "_"), text)
        for path, text in files.items()
    }


def put(folder: Path, files: dict[str, str]) -> Path:
    """Write them there."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder
