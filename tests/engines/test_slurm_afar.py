"""Slurm jobs of a run whose worker knows nothing but a server."""

import pytest

from tests.support.afar import afar
from tests.support.patience import eventually
from tests.support.run_crew import ended

PLATFORMS = """
[hpc]
runner = "slurm"
directives = {"--mem" = 50}
"""
FLOW = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = say[-P1] => say
[runtime]
    [[say]]
        platform = hpc
        script = '''
            echo begun on $SLURMD_NODENAME
            env -u TIDEWHEEL_JOB_DIR -u TIDEWHEEL_SECRET tidewheel message "by token"
            tidewheel message "by its folder"
            until [[ -e {gate} ]]; do sleep 0.1; done
            echo over
        '''
"""


@pytest.fixture
def far(tmp_path, slurm):  # in this order: Slurm is emptied after those who fill it are gone
    del slurm
    with afar(tmp_path, None) as made:
        yield made


def run_log(far, name):
    reply = far.caller("read").get(f"/runs/flow%2Frun1/log?id={name}&file=out")
    return reply.body.decode() if reply.status == 200 else ""


def until_succeeded(client, task_id):
    eventually(lambda: client.get(task_id).status.value == "succeeded", f"{task_id} ended")


def test_jobs_of_slurm_behind_a_server_are_read_heard_and_adopted(far, slurm, tmp_path):
    gate, flow = tmp_path / "gate", tmp_path / "flow"
    flow.mkdir()
    (flow / "flow.cylc").write_text(FLOW.replace("{gate}", str(gate)))
    far.home.mkdir(mode=0o700, exist_ok=True)
    (far.home / "platforms.toml").write_text(PLATFORMS)
    worker = ("w", "--runner", "slurm", "--queue", "run:*")
    often = slurm.environment | {"TIDEWHEEL_ADOPT_INTERVAL_SECONDS": "0.5"}
    far.start("scheduler")
    first = far.worker_afar(*worker, **often)
    operator = {
        "TIDEWHEEL_STORE": "",
        "TIDEWHEEL_SERVER": far.url,
        "TIDEWHEEL_TOKEN": far.new_token("submit", "operate"),
    }
    started = far.start("run", str(flow), "--detach", **operator)
    assert ended(started) == 0, started.log
    eventually(lambda: "begun on n" in run_log(far, "1/say"), "its log is at the server")
    first.kill()
    far.worker_afar(*worker, **often).says("lease.adopted")
    gate.touch()
    eventually(lambda: "over\n" in run_log(far, "2/say"), "the run goes on to its end", 90.0)
    with far.client() as client:
        for point in (1, 2):
            task_id = f"flow/run1/{point}/say/1"
            until_succeeded(client, task_id)
            said = [one.text for one in client.outputs(task_id)]
            assert sorted(said)[:2] == ["by its folder", "by token"]
            assert client.get(task_id).attempt == 1
            assert run_log(far, f"{point}/say").count("begun on n") == 1
