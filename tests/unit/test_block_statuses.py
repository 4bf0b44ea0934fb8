"""Blocks, instances and stages in the words of SIP: tables of what each status follows from."""

import itertools
from dataclasses import replace

import pytest

from tests.unit.test_run_values import view
from tidewheel.core.operator.blocks import (
    BlockStatus,
    BlockView,
    BlockWork,
    SbiView,
    StageSigns,
    StageStatus,
    block_status,
    plain_status,
    read_block_status,
    run_statuses,
    sbi_status,
    stage_status,
    subarray_of,
)
from tidewheel.errors import BadSetting

ABORTED, BY_ITSELF = "aborted by ada: wrong field", "aborted: the stall timeout has passed"

# Each line: the status of the run, its reason, and the status of the block.
OF_RUNS = [
    ("created", "", "created"),
    ("running", "", "running"),
    ("paused", "", "running"),
    ("waiting for release", "", "running"),
    ("stopping", "", "running"),
    ("stopping", ABORTED, "running"),  # its stages are still being ended
    ("stalled", "stalled: a failed", "failed"),
    ("error", "the definition cannot be read", "failed"),
    ("stopped", BY_ITSELF, "failed"),
    ("stopped", "stopped: by ada", "stopped"),
    ("stopped", ABORTED, "aborted"),
    ("completed", "completed, 1 lost", "completed"),
]


@pytest.mark.parametrize(("run_status", "reason", "status"), OF_RUNS)
def test_the_status_of_a_block_follows_from_that_of_its_run(run_status, reason, status):
    assert block_status(run_status, reason) == plain_status(run_status, reason) == status


# Each line: what tasks of a running block do, and its status.
OF_WORK = [
    ("", "running"),
    ("leased", "running"),
    ("queued", "waiting_for_resources"),
    ("timed", "running"),
    ("objects", "waiting_for_object"),
    ("leased queued", "running"),
    ("leased objects", "running"),
    ("queued objects", "waiting_for_resources"),
    ("queued timed", "waiting_for_resources"),
    ("timed objects", "running"),
]


@pytest.mark.parametrize(("does", "status"), OF_WORK)
def test_a_block_waits_for_what_it_waits_for_and_does_nothing_else(does, status):
    work = BlockWork(**dict.fromkeys(does.split(), True))
    assert block_status("running", "", work=work) == status


@pytest.mark.parametrize(("run_status", "reason", "status"), OF_RUNS)
def test_only_a_running_block_waits_for_objects_or_resources(run_status, reason, status):
    work = BlockWork(queued=True, objects=True)
    wanted = "waiting_for_resources" if run_status == "running" else status
    assert block_status(run_status, reason, work=work) == wanted


@pytest.mark.parametrize(("run_status", "reason", "status"), OF_RUNS)
def test_only_a_block_that_has_not_begun_waits_for_others(run_status, reason, status):
    wanted = "waiting_for_blocks" if run_status == "created" else status
    assert block_status(run_status, reason, waits=True) == wanted


@pytest.mark.parametrize(("run_status", "reason", "status"), OF_RUNS)
def test_a_block_is_looked_for_among_the_runs_that_can_have_its_status(
    run_status, reason, status
):
    assert run_status in run_statuses(BlockStatus(status))
    for waits, work in itertools.product((True, False), (BlockWork(), BlockWork(queued=True))):
        found = block_status(run_status, reason, waits=waits, work=work)
        assert run_status in run_statuses(found)


@pytest.mark.parametrize(
    ("blocks", "status"),
    [
        ("", "created"),
        ("created", "created"),
        ("created running", "running"),
        ("running failed aborted stopped completed", "running"),
        ("failed aborted stopped completed created", "failed"),
        ("aborted stopped completed created", "aborted"),
        ("stopped completed created", "stopped"),
        ("completed created", "running"),  # there is more to come
        ("completed", "completed"),
    ],
)
def test_the_status_of_an_instance_follows_from_those_of_its_blocks(blocks, status):
    counts = dict.fromkeys(map(BlockStatus, blocks.split()), 2)
    assert sbi_status(counts) == status


def test_an_instance_is_completed_only_if_every_block_is():
    plain = {plain_status(status, reason) for status, reason, _ in OF_RUNS}
    for there in itertools.product((0, 1), repeat=len(plain)):
        counts = dict(zip(sorted(plain), there, strict=True))
        is_all = [one for one, count in counts.items() if count] == [BlockStatus.COMPLETED]
        assert (sbi_status(counts) is BlockStatus.COMPLETED) == is_all


# Each line: the state of the task, remarks on it, its job, and the status of the stage: while
# its block goes on, and after the block was aborted.
OF_STAGES = [
    ("future", "", "", "waiting_for_dependencies", "aborted"),
    ("waiting", "", "", "waiting_for_dependencies", "aborted"),
    ("waiting", "objects", "", "waiting_for_object", "aborted"),
    ("waiting", "held", "", "held", "aborted"),
    ("waiting", "retrying", "failed", "retrying", "failed"),
    ("ready", "", "", "waiting_for_dependencies", "aborted"),
    ("preparing", "", "", "preparing", "aborted"),
    ("preparing", "", "ready", "waiting_for_resources", "aborted"),
    ("preparing", "withdrawn", "ready", "withdrawn", "aborted"),
    ("preparing", "", "running", "preparing", "preparing"),
    ("submitted", "", "running", "preparing", "preparing"),
    ("preparing", "begun", "running", "running", "running"),  # its scheduler has not heard
    ("running", "begun", "running", "running", "running"),
    ("running", "begun", "cancelling", "running", "running"),
    ("running", "", "ready", "waiting_for_resources", "aborted"),  # its worker is gone
    ("running", "begun", "cancelled", "running", "aborted"),
    ("running", "begun", "succeeded", "running", "succeeded"),
    ("running", "begun", "failed", "running", "failed"),
    ("failed", "incomplete", "failed", "failed", "failed"),
    ("failed", "incomplete held", "cancelled", "failed", "aborted"),
    ("submit-failed", "incomplete", "", "failed", "aborted"),
    ("succeeded", "", "succeeded", "succeeded", "succeeded"),
    ("succeeded", "switched off", "", "switched_off", "switched_off"),
    ("lost", "", "", "lost", "lost"),
    ("not taken", "", "", "not_taken", "not_taken"),
    ("removed", "", "", "removed", "removed"),
]


@pytest.mark.parametrize(("state", "said", "job", "status", "when_aborted"), OF_STAGES)
def test_the_status_of_a_stage_follows_from_its_task_and_its_job(
    state, said, job, status, when_aborted
):
    signs = StageSigns(
        state=state,
        remarks=("switched off",) if said == "switched off" else tuple(said.split()),
        job=job,
        has_begun="begun" in said,
        lacks_objects_alone="objects" in said,
    )
    assert stage_status(signs) == status
    assert stage_status(signs._replace(is_aborted=True)) == when_aborted


def test_a_stage_of_a_block_that_has_not_begun_is_created_or_aborted():
    signs = StageSigns(state="future", block_begun=False)
    assert stage_status(signs) is StageStatus.CREATED
    assert stage_status(signs._replace(is_aborted=True)) is StageStatus.ABORTED


@pytest.mark.parametrize(
    "text", ["waiting_for_resources", "waiting for resources", " Waiting-For-Resources "]
)
def test_a_status_may_be_written_with_blanks_or_hyphens(text):
    assert read_block_status(text) is BlockStatus.WAITING_FOR_RESOURCES


def test_a_status_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(BadSetting, match=r"'stalled'; expected created, .*failed"):
        read_block_status("stalled")


@pytest.mark.parametrize(
    ("body", "wanted", "found"),
    [
        ('{"subarray_id": "3"}', None, "3"),
        ('{"subarray_id": 3}', "3", "3"),
        ('{"subarray_id": "3"}', "4", None),
        ('{"id": "4"}', "4", None),
        ('{"subarray_id": null}', None, None),
        ("[3]", "3", None),
        ('{"subarray_id": "\\u0000\\u00e4"}', "\x00ä", "\x00ä"),
    ],
)
def test_the_subarray_of_a_request_is_a_text(body, wanted, found):
    assert subarray_of(body, wanted) == found


def test_a_block_and_an_instance_tell_their_own_status():
    run = replace(view("PB-1"), status="running")
    block = BlockView(id="PB-1", sbi="S", position=1, body="{}", run=run, priority=0)
    assert block.status is BlockStatus.RUNNING
    assert replace(block, work=BlockWork(queued=True)).status == "waiting_for_resources"
    sbi = SbiView(id="S", body="{}", fingerprint="", requested_at=1.0, requested_by="ada")
    assert sbi.status is BlockStatus.CREATED
    assert replace(sbi, counts={BlockStatus.FAILED: 1}).status is BlockStatus.FAILED
