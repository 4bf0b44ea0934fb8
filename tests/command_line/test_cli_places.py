"""Platforms of a definition, as somebody meets them who validates it or waits for a worker."""

import signal

from tests.support.patience import eventually_told

FLOW = """[scheduling]
    [[graph]]
        R1 = model
[runtime]
    [[model]]
        platform = moon
        [[[directives]]]
            --mem = 2G
"""


def write_flow(tidewheel, text=FLOW):
    (tidewheel.folder / "flow").mkdir()
    (tidewheel.folder / "flow" / "flow.cylc").write_text(text)


def test_a_platform_that_nobody_described_is_an_error_until_somebody_does(tidewheel):
    write_flow(tidewheel)
    for command in ("validate", "run"):
        answer = tidewheel(command, "flow")
        assert answer.status == 2
        said = answer.out + answer.err
        assert "error: platform = moon of model is not known: no job could run there" in said
        assert (
            "Describe it in platforms.toml of the state directory: [moon] and below it" in said
        )
    assert not (tidewheel.state / "runs").exists()
    tidewheel.state.mkdir(parents=True, exist_ok=True)
    (tidewheel.state / "platforms.toml").write_text('[moon]\nrunner = "slurm"\n')
    answer = tidewheel("validate", "flow")
    assert answer.status == 0
    assert "moon" not in answer.out


def test_the_hint_for_a_host_with_dots_is_a_file_of_platforms_that_works(tidewheel):
    write_flow(
        tidewheel,
        FLOW.replace("platform = moon", "[[[remote]]]\n            host = big.machine"),
    )
    answer = tidewheel("validate", "flow")
    assert answer.status == 2
    assert 'of the state directory: ["big.machine"] and below it runner = "slurm"' in answer.out
    tidewheel.state.mkdir(parents=True, exist_ok=True)
    (tidewheel.state / "platforms.toml").write_text('["big.machine"]\nrunner = "slurm"\n')
    assert tidewheel("validate", "flow").status == 0


def test_a_command_as_a_host_is_said_to_be_unsupported(tidewheel):
    write_flow(
        tidewheel,
        FLOW.replace("platform = moon", "[[[remote]]]\n            host = $(choose-one)"),
    )
    answer = tidewheel("validate", "flow")
    assert answer.status == 2
    assert "Commands and variables in host are not supported: write the name" in answer.out
    assert "platforms.toml" not in answer.out


def test_a_run_that_is_only_played_needs_no_place(tidewheel):
    at_once = "        [[[simulation]]]\n            default run length = PT0S\n"
    write_flow(tidewheel, FLOW + at_once)
    assert tidewheel("run", "flow", "--mode", "dummy").status == 0


def test_a_batch_system_of_a_job_that_nobody_described_is_an_error(tidewheel):
    write_flow(
        tidewheel, FLOW.replace("platform = moon", "[[[job]]]\n            batch system = pbs")
    )
    answer = tidewheel("validate", "flow")
    assert answer.status == 2
    assert "error: batch system = pbs of model is not known" in answer.out
    assert "known platforms: localhost, slurm" in answer.out


def test_a_file_of_platforms_that_is_wrong_is_refused(tidewheel):
    write_flow(tidewheel)
    tidewheel.state.mkdir(parents=True)
    (tidewheel.state / "platforms.toml").write_text('[moon]\nrunner = "rocket"\n')
    answer = tidewheel("validate", "flow")
    assert answer.status == 2
    assert "runner of platform moon is 'rocket'\n  Expected shell or slurm" in answer.err


def test_a_task_for_slurm_says_which_worker_it_waits_for(tidewheel):
    answer = tidewheel("submit", "--runner", "slurm", "--id", "a", "--", "true")
    assert answer.status == 0
    with tidewheel.started("worker") as worker:
        worker.read_until("serving")
        how = "start a worker: tidewheel worker --queue default --runner slurm"
        eventually_told(lambda: how in tidewheel("task", "a").out, "the worker is known")


def test_a_worker_does_not_claim_to_have_a_runner_that_it_has_not(tidewheel):
    answer = tidewheel("worker", "--label", "runner:slurm")
    assert answer.status == 2
    assert "--runner slurm adds it" in answer.err


def test_nor_to_allow_what_it_does_not(tidewheel):
    answer = tidewheel("worker", "--label", "allow:host-network")
    assert answer.status == 2
    assert "--allow-compose host-network adds it" in answer.err
    unknown = tidewheel("worker", "--allow-compose", "everything")
    assert unknown.status == 2 and "WHAT is one of privileged" in unknown.err
    pattern = tidewheel("worker", "--allow-compose", "run:*:bind-mounts")
    assert pattern.status == 2 and "the whole name of a queue, without *" in pattern.err


def test_nor_a_docker_compose_that_it_has_not(tidewheel):
    answer = tidewheel("worker", "--label", "compose:2")
    assert answer.status == 2
    assert "2 offers it automatically" in answer.err


def test_a_job_that_no_worker_takes_is_told_where_the_run_is_driven_once_for_each_cause(
    tidewheel,
):
    tidewheel.state.mkdir(parents=True)
    (tidewheel.state / "platforms.toml").write_text('[moon]\nlabels = ["big"]\n')
    write_flow(
        tidewheel,
        FLOW.replace("R1 = model", "R1 = model & other").replace(
            "[[model]]", "[[other]]\n        platform = moon\n    [[model]]"
        ),
    )
    how = "tidewheel worker --queue run:flow/run1 --label big"
    cause = f"wait: No worker offers the label 'big'; start a worker: {how}"
    with tidewheel.started("run", "flow") as running:
        said = running.read_until(cause)
        assert f"1/model, 1/other {cause}" in said
        refused = tidewheel("broadcast", "-n", "model", "-s", "platform=hpcx")
        assert refused.status == 2
        assert "platform = hpcx of model is not known" in refused.err
        running.send(signal.SIGTERM)
        running.wait()
    assert how in tidewheel("task", "flow/run1/1/model/1").out + tidewheel("why", "1/model").out


def test_it_is_told_as_well_while_workers_take_others_that_came_later(tidewheel):
    tidewheel.state.mkdir(parents=True)
    (tidewheel.state / "platforms.toml").write_text('[moon]\nlabels = ["big"]\n')
    short = "[[b<n>]]\n        script = sleep 1\n    [[model]]"
    text = FLOW.replace("R1 = model", "R1 = model & b<n>").replace("[[model]]", short)
    write_flow(tidewheel, "[task parameters]\n    n = 1..40\n" + text)
    with tidewheel.started("run", "flow", "--slots", "1") as running:
        running.read_until(" succeeded")
        running.read_until("1/model waits: No worker offers the label 'big'")
        running.read_until(" succeeded")
        running.send(signal.SIGKILL)
        running.wait()
