"""Knows version 1 of SIP's files by their shape: definitions, and requests for blocks.

Version 1 had no `schema_version`. Its definitions say in `ee_config` and `app_config` of a
stage which templates it has, under templates/WORKFLOW/VERSION/STAGE/VERSION.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.sip.document import Fields, Items, Node, Scalar

CODE = "version-1"
ENGINE, APPLICATION = "ee_config", "app_config"
BLOCKS, STAGES = "processing_blocks", "stages"
# Other words for the parts of a request: of its top, and of a block.
OTHER_IDS = ("sched_block_instance_id", "sbi_id")
OTHER_SCHEDULING_BLOCKS = ("scheduling_block_id", "sched_block_id")
OTHER_SUBARRAYS = ("subarray", "sub_array_id")
WORKFLOW_ID, WORKFLOW_VERSION = "workflow_id", "workflow_version"
WORKFLOW_PARAMETERS = "workflow_parameters"
_OLD = re.compile(r"[01](\.\d+)*", re.ASCII)


def is_definition_1(root: Fields) -> bool:
    """Says whether a file is a definition of version 1."""
    version = root.get("schema_version")
    if version is not None:
        return isinstance(version, Scalar) and _OLD.fullmatch(version.text) is not None
    return any(
        stage.get(key) is not None
        for stage in mappings_in(root.get(STAGES))
        for key in (ENGINE, APPLICATION)
    )


def report_definition_1(root: Fields, findings: Findings) -> None:
    """Reports a definition of version 1: the one thing to say of it."""
    seen = "this is a version 1 definition; only version 2.0 is supported"
    hint = f"convert it to 2.0, with its stages: {convert_command(root)}"
    findings.error(CODE, seen, hint, root.position)


def is_request_1(root: Fields) -> bool:
    """Says whether a file is a request of version 1: an instance, or a block alone."""
    if root.get(BLOCKS) is None:
        return is_block_alone(root)
    version = root.get("version")
    if version is not None:
        return isinstance(version, Scalar) and _OLD.fullmatch(version.text) is not None
    words = (*OTHER_IDS, *OTHER_SCHEDULING_BLOCKS, *OTHER_SUBARRAYS)
    return any(root.get(word) is not None for word in words) or any(
        block.get(WORKFLOW_ID) is not None for block in mappings_in(root.get(BLOCKS))
    )


def is_block_alone(root: Fields) -> bool:
    """Says whether a file is a processing block without an instance around it."""
    named = root.get("id")
    is_block = isinstance(named, Scalar) and named.text.startswith("PB-")
    asks = root.get("workflow") is not None or root.get(WORKFLOW_ID) is not None
    return is_block and asks and root.get(BLOCKS) is None and root.get(STAGES) is None


def convert_command(root: Fields) -> str:
    return f"tidewheel convert {root.position.file}"


def mappings_in(node: Node | None) -> Iterator[Fields]:
    """Yields the mappings of a list; none, if it is no list."""
    for item in node.items if isinstance(node, Items) else ():
        if isinstance(item, Fields):
            yield item
