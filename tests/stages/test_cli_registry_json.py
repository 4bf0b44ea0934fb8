"""The shapes of JSON about workflows, blocks and objects that docs/json.md promises."""

import json

import pytest

from tests.support.json_page import promised, shape
from tests.support.many_commands import answers
from tests.support.workflow_folders import put, sip_files

FREE = {"parameters", "facts", "args", "request", "values", "source"}
BLOCKS = ["PB-20261115-sip-0001", "PB-20261115-sip-0002"]
SBI = "SBI-20261115-sip-0001"


def request():
    """Two blocks; the second waits for the first."""
    waits = {"type": "processing_block", "value": BLOCKS[0], "condition": "complete"}
    return {
        "id": SBI,
        "version": "2.0",
        "scheduling_block": {"id": "SB-1"},
        "processing_blocks": [
            {
                "id": name,
                "type": "offline",
                "workflow": {"id": "vis", "version": "1.0.0", "parameters": {"site": "x"}},
                "dependencies": [waits] if name == BLOCKS[1] else [],
            }
            for name in reversed(BLOCKS)
        ],
    }


@pytest.mark.req("R004-9", "R004-53")
def test_every_answer_about_workflows_and_blocks_has_the_keys_of_its_example(tidewheel):
    put(tidewheel.folder, sip_files(script_sh=""))
    (tidewheel.folder / "night.json").write_text(json.dumps(request()))
    commands = {
        "register": ["register", "vis-1.0.0.yaml"],
        "workflows": ["workflows"],
        "workflows show": ["workflows", "show", "vis"],
        "workflows check": ["workflows", "check", "vis"],
        "workflows render": ["workflows", "render", "vis", "-p", "site=north"],
        "workflows diff": ["workflows", "diff", "vis/1.0.0", "1.0.0"],
        "sbi submit": ["sbi", "submit", "night.json"],
        "sbi": ["sbi"],
        "sbi show": ["sbi", "show", SBI],
        "blocks": ["blocks"],
        "blocks show": ["blocks", "show", BLOCKS[1]],
        "blocks show --history": ["blocks", "show", BLOCKS[1], "--history"],
        "blocks abort": ["blocks", "abort", BLOCKS[1]],
        "sbi abort": ["sbi", "abort", SBI],
        "objects post": ["objects", "post", "visibilities", "--fact", "size=2TB"],
        "objects": ["objects"],
        "objects remove": ["objects", "remove", "visibilities"],
        "workflows remove": ["workflows", "remove", "vis"],
    }
    told = answers(tidewheel, [["--json", *words] for words in commands.values()])
    examples = promised()
    for name, answer in zip(commands, told, strict=True):
        example = examples[f"tidewheel {name}"]
        assert shape(answer.json, FREE) == shape(example, FREE), name
