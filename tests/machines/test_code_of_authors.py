"""Event handlers and xtrigger functions of definitions: whose user runs them, and where."""

import os

import pytest

from tests.support.afar import afar
from tests.support.http_server import in_path
from tests.support.other_users import as_root, become, open_folder
from tests.support.patience import eventually

STRANGER = 65534  # nobody: another user than the scheduler's, which is root here
CANARY = "only-the-scheduler-knows"
TELLING = "uid=$(id -u) canary=${CANARY:-none} parent=$(tr '\\0' ' ' < /proc/$PPID/cmdline)"
TELLS_RUN = "tidewheel broadcast --set '[environment]GIVEN=here'"
FLOW = f"""
[scheduler]
    [[events]]
        startup handlers = echo "startup {TELLING}"; own-program %(message)s; {TELLS_RUN}
[scheduling]
    [[xtriggers]]
        up = looking(x=1):PT1S
    [[graph]]
        R1 = @up => a => b
[runtime]
    [[a]]
        script = echo "job uid=$(id -u) seen=$up_uid $up_canary"
        [[[events]]]
            succeeded handlers = echo "succeeded {TELLING} %(id)s"
            failed handlers = false
    [[b]]
"""
LOOKING = """
import os

def looking(x):
    count = int(open(__file__ + ".count").read()) if os.path.exists(__file__ + ".count") else 0
    open(__file__ + ".count", "w").write(str(count + 1))
    return count > 1, {
        "uid": str(os.getuid()), "canary": os.environ.get("CANARY", "none"), "polls": str(count)
    }
"""

OWN = {"bin/own-program": "#!/bin/sh\necho own program: $1\n"}


@pytest.fixture
def far(tmp_path):
    with afar(tmp_path, None) as made:
        yield made


@pytest.fixture
def stranger(far):
    """A worker over HTTP, of another user, who sees nothing of the scheduler's files."""
    with open_folder() as home:
        os.chown(home, STRANGER, STRANGER)
        told = {"HOME": str(home), "TIDEWHEEL_HOME": str(home / "state")}
        told |= {"TIDEWHEEL_STORE": "", "TIDEWHEEL_SERVER": far.url}
        told |= {"TIDEWHEEL_TOKEN": far.token}
        words = ("worker", "--queue", "run:*", "--slots", "4")
        far.start(*words, prefix=become(STRANGER), **told)
        yield home / "state"
        far.end()  # before its folder goes


def begun(far, name="wf", flow=FLOW):
    """The name of a run whose definition was sent to the server."""
    folder = far.folder / name
    for path, text in {"flow.cylc": flow, "lib/python/looking.py": LOOKING, **OWN}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755)
    told = {"TIDEWHEEL_STORE": "", "TIDEWHEEL_TOKEN": far.new_token("submit")}
    far.start("run", str(folder), "--server", far.url, **told)
    eventually(lambda: status_of(far, f"{name}/run1"), "it has begun")
    return f"{name}/run1"


def status_of(far, run):
    answer = far.caller("read").get(f"/runs/{in_path(run)}")
    return answer.json["run"]["status"] if answer.status == 200 else ""


def printed(state, run, what):
    """What the code of a run printed on the worker's machine, and the same at the server."""
    return "".join(
        path.read_text() for path in sorted(state.glob(f"runs/{run}/log/job/{what}/01/job.out"))
    )


@as_root
@pytest.mark.parametrize("options", [(), ("--trust-definitions",)], ids=["plain", "trusting"])
def test_h2_code_that_came_over_rest_runs_as_the_workers_user_alone(far, stranger, options):
    """H2: `submit` is not code as the scheduler's user, whatever the scheduler trusts."""
    far.start("scheduler", *options, CANARY=CANARY)
    run = begun(far)
    eventually(lambda: status_of(far, run) == "completed", "the run is over")
    eventually(lambda: "succeeded" in printed(stranger, run, "code/handler-*"), "all handled")
    said = printed(stranger, run, "code/handler-*")
    for event in ("startup", "succeeded"):
        assert f"{event} uid={STRANGER} canary=none" in said
    assert "1/a" in said and "own program: wf/run1 was started" in said
    assert f"job uid={STRANGER} seen={STRANGER} none" in printed(stranger, run, "1/a")
    assert not (far.home / "runs" / run / "log/scheduler/handlers/activity.log").exists()
    assert not (far.home / "runs" / run / "lib/python/looking.py.count").exists()
    assert CANARY not in said
    [asked] = far.caller("read").get(f"/runs/{in_path(run)}/history").json["commands"]
    assert (asked["verb"], asked["who"]) == ("broadcast", "event handler")
    polls = stranger / "runs" / run / "log/job/code/function-looking"
    assert [one for one in polls.iterdir() if not one.is_symlink()] == []
    path = "/tasks?queue=" + in_path(f"run:{run}/code")

    def code_tasks():
        return far.caller("read").get(path).json["tasks"]

    # A handler has printed before its worker says that it ended.
    eventually(
        lambda: {one["status"] for one in code_tasks()} == {"succeeded"}, "all code is done"
    )
    assert not any("function-" in one["id"] for one in code_tasks())
