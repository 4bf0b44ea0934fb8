"""Processing blocks on one machine: the example of their page, and a scheduler that dies."""

import json
import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.patience import eventually_told
from tests.support.sips import definition, stage
from tests.support.workflow_folders import put

ROOT = Path(__file__).parents[2]
QUICK = {
    "TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1",
    "TIDEWHEEL_SCHEDULER_LEASE_SECONDS": "2",
}
NAMES = [f"PB-20261115-sip-{number}" for number in range(4)]


def blocks(cli):
    return {one["id"]: one for one in cli("blocks", "--json").json["blocks"]}


def all_are(cli, status):
    return all(one["status"] == status for one in blocks(cli).values())


@pytest.fixture
def started(tidewheel):
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(tidewheel.started(*words, **QUICK))


@pytest.mark.req("R004-53", "R004-55", "R004-56")
def test_the_example_of_the_page_does_what_the_page_says(tidewheel, started):
    page = (ROOT / "docs/blocks.md").read_text(encoding="utf-8")
    for words in re.findall(
        r"^\$ tidewheel ((?:init|register|sbi submit) [^#\n]*)", page, re.M
    ):
        answer = tidewheel(*words.split())
        assert answer.status == 0, answer
    assert "tidewheel up" in answer.err  # nothing runs blocks in a store of one's own
    first = tidewheel("blocks", "show", "PB-20261115-sip-first").out
    assert "no scheduler has taken PB-20261115-sip-first yet; start one: tidewheel up" in first
    asked = blocks(tidewheel)
    assert [one["priority"] for one in asked.values()] == [-1, 0, 100]
    started("scheduler")
    started("worker", "--queue", "run:*")
    eventually_told(lambda: all_are(tidewheel, "completed"), "every block is done")
    ended = {name: one["ended_at"] for name, one in blocks(tidewheel).items()}
    assert min(ended, key=ended.get) == "PB-20261115-sip-first"


@pytest.mark.req("R004-56", "R004-62")
def test_a_scheduler_that_is_killed_loses_no_block_and_begins_none_twice(tidewheel, started):
    stages = definition(stage("a", "object:go present"), stage("b", "a complete"))
    files = {f"stages/{name}/1.0.0/script.sh": "true\n" for name in "ab"}
    asked = [
        {
            "id": name,
            "type": "offline",
            "workflow": {"id": "w", "version": "1.0.0"},
            "dependencies": [
                {"type": "processing_block", "value": parent, "condition": "complete"}
                for parent in NAMES[:place][-1:]
            ],
        }
        for place, name in enumerate(NAMES)
    ]
    request = {
        "id": "SBI-20261115-sip-1",
        "version": "2.0",
        "scheduling_block": {"id": "x"},
        "processing_blocks": asked,
    }
    put(tidewheel.folder, {"w-1.0.0.yaml": stages, **files})
    assert tidewheel("register", "w-1.0.0.yaml").status == 0
    assert tidewheel("sbi", "submit", "-", stdin=json.dumps(request)).status == 0
    for _ in range(2):
        started("scheduler")
    started("worker", "--queue", "run:*")
    eventually_told(
        lambda: blocks(tidewheel)[NAMES[0]]["driven"], "somebody has the first block"
    )
    owner = tidewheel("show", NAMES[0], "--json").json["run"]["scheduler"]["pid"]
    os.kill(owner, signal.SIGKILL)
    assert tidewheel("objects", "post", "go").status == 0
    eventually_told(lambda: all_are(tidewheel, "completed"), "every block is done")
    ids = [one["id"] for one in tidewheel("tasks", "--jobs", "--json").json["tasks"]]
    assert sorted(ids) == sorted(f"{name}/1/{part}/1" for name in NAMES for part in "ab")
