"""Files of SIP's version 1, as its prototype had them, and what it made of their templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jinja2
import yaml

COMPOSE = """\
version: '3.6'
services:
  work:
    image: busybox:1.36
    command: [ '{{ stage.args }}' ]
    deploy:
      mode: replicated
      replicas: 1
"""
ARGS = '{"duration": {{ stage.duration }}, "message": "{{ stage.id }} {{ stage.version }}"}\n'


def stage_1(name: str, *parents: str, **changed: Any) -> dict[str, Any]:
    return {
        "id": name,
        "version": "1.0.0",
        "type": "processing",
        "dependencies": [
            {"type": "stage", "value": one, "condition": "complete"} for one in parents
        ],
        "resources_required": [],
        "ee_config": {"compose_template": "docker-compose.yaml.j2"},
        "app_config": {"args_template": "args.json.j2"},
        **changed,
    }


def definition_1(*stages: Mapping[str, Any], **changed: Any) -> str:
    document = {"id": "mock", "version": "1.0.0", "stages": list(stages), **changed}
    return json.dumps(document, indent=2)


def folder_1(*stages: str, args: str = ARGS, compose: str = COMPOSE) -> dict[str, str]:
    """A definition of stages one after the other, with their templates, by path."""
    parents: tuple[str, ...] = ()
    made = []
    files: dict[str, str] = {}
    for name in stages:
        made.append(stage_1(name, *parents))
        lead = f"templates/mock/1.0.0/{name}/1.0.0"
        files |= {f"{lead}/args.json.j2": args, f"{lead}/docker-compose.yaml.j2": compose}
        parents = (name,)
    return {"mock_1.0.0.json": definition_1(*made), **files}


def block_1(**changed: Any) -> dict[str, Any]:
    return {
        "id": "PB-20181116-sip-000",
        "version": "1.0.0",
        "type": "offline",
        "priority": 1,
        "dependencies": [],
        "resources_required": [],
        "workflow": {"id": "mock", "version": "1.0.0", "parameters": {"a": {"duration": 1}}},
        **changed,
    }


def sbi_1(*blocks: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    return {
        "id": "SBI-20181116-sip-0000",
        "version": "1.0.0",
        "scheduling_block": {"id": "SB-1", "project": "sip", "programme_block": "demos"},
        "processing_blocks": list(blocks or [block_1()]),
        **changed,
    }


def rendered_1(
    stage: Mapping[str, Any], args: str, compose: str, given: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The arguments and the compose file that version 1 made for a stage with parameters."""
    known = {**stage, **given}
    arguments = json.loads(jinja2.Template(args).render(stage=known))
    text = jinja2.Template(compose).render(stage={"args": json.dumps(arguments)})
    return arguments, yaml.safe_load(text)
