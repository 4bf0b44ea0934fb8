"""Tasks that are runs of another workflow (issue 19), as people see them, wherever they are."""

import json

import pytest

from tests.support.cli_fixture import EVERYWHERE
from tests.support.patience import eventually_told

OUTER = """
[scheduling]
    [[graph]]
        R1 = observe => image => publish
[runtime]
    [[observe]]
        script = echo '{"beams": [4, 8], "file": "obs.ms"}' > "$TIDEWHEEL_OUTPUTS"
    [[image]]
        workflow = ./image/
        [[[inputs]]]
            FILE = observe.file
            BEAMS = observe.beams
    [[publish]]
        script = echo "$MAP of $ALL"
        [[[inputs]]]
            MAP = image.join.path
            ALL = image.join.beams
"""
# A list that a task of it returns, and a task for each element: both at once.
IMAGE = r"""#!jinja2
[task parameters]
    beam = split.beams
[scheduling]
    [[graph]]
        R1 = split => grid<beam> => join
[runtime]
    [[split]]
        script = echo '{"beams": {{ BEAMS }}}' > "$TIDEWHEEL_OUTPUTS"
    [[grid<beam>]]
        script = echo "{\"beam\": $CYLC_TASK_PARAM_beam}" > "$TIDEWHEEL_OUTPUTS"
    [[join]]
        script = echo '{"path": "{{ FILE }}.fits", "beams": '$B} > "$TIDEWHEEL_OUTPUTS"
        [[[inputs]]]
            B = grid<beam>.beam
"""


def define(tidewheel, **texts):
    for path, text in texts.items():
        folder = tidewheel.folder.joinpath("flow", *path.split("_")[1:])
        folder.mkdir(parents=True)
        (folder / "flow.cylc").write_text(text)
    return str(tidewheel.folder / "flow")


@EVERYWHERE
def test_values_go_into_a_run_and_come_back_and_elements_are_made_in_it(tidewheel):
    folder = define(tidewheel, flow=OUTER, flow_image=IMAGE)
    done = tidewheel("run", folder)
    assert done.status == 0, done.out + done.err
    assert tidewheel("log", "flow", "1/publish").out == "obs.ms.fits of [4, 8]\n"
    inside = "flow/run1/1/image/01"
    names = [one["name"] for one in tidewheel("runs", "--nested", "--json").json["runs"]]
    assert sorted(names) == ["flow/run1", inside]
    values = tidewheel("show", inside, "1/grid_beam1", "--json").json["tasks"][0]
    assert json.dumps({"beam": 8}) in json.dumps(values)


DEEP = {
    "flow": "[scheduling]\n[[graph]]\nR1 = middle => after\n[runtime]\n[[middle]]\n"
    "workflow = ./middle/\n[[after]]\nscript = true\n",
    "flow_middle": "[scheduling]\n[[graph]]\nR1 = inner\n[runtime]\n[[inner]]\n"
    "workflow = ./inner/\n",
    "flow_middle_inner": "[scheduling]\n[[graph]]\nR1 = work\n[runtime]\n[[work]]\n"
    "script = echo no beam today >&2; false\n",
}
DEEPEST = "flow/run1/1/middle/01/1/inner/01"


@EVERYWHERE
def test_a_run_stalled_two_levels_down_is_found_and_mended_from_the_outermost(tidewheel):
    folder = define(tidewheel, **DEEP)
    with tidewheel.started("run", folder) as run:
        run.read_until("1/middle started")

        def reasons():
            [task] = tidewheel("why", "flow", "1/middle", "--json").json["tasks"]
            return {one["text"]: one for one in task["reasons"]}

        stalled = f"1/inner is the run {DEEPEST}, stalled: 1/work failed, incomplete"
        eventually_told(lambda: stalled in reasons(), "it stalls")
        found = reasons()
        [cause] = [
            one for text, one in found.items() if text.startswith(f"{DEEPEST}: 1/work f")
        ]
        assert cause["commands"][0].endswith(f"trigger {DEEPEST} 1/work")
        assert not cause["passes"]
        assert "no beam today" in tidewheel("log", DEEPEST, "1/work", "--err").out
        assert DEEPEST in tidewheel("show", "flow").out
        assert tidewheel("set", DEEPEST, "1/work").status == 0
        run.read_until("completed")
    assert tidewheel("show", "flow/run1", "--json").json["run"]["status"] == "completed"


@EVERYWHERE
@pytest.mark.parametrize("verb", ["pause", "kill"])
def test_what_is_done_to_a_task_reaches_the_run_that_it_is(tidewheel, verb):
    slow = DEEP | {"flow_middle_inner": DEEP["flow_middle_inner"].replace("false", "sleep 600")}
    folder = define(tidewheel, **slow)

    def status():
        told = tidewheel("show", DEEPEST, "--json")
        return told.json["run"]["status"] if told.status == 0 else ""

    with tidewheel.started("run", folder) as run:
        run.read_until("1/middle started")
        eventually_told(lambda: status() == "running", "the innermost one runs")
        if verb == "pause":
            tidewheel("pause", "flow")
            eventually_told(lambda: status() == "paused", "all of them are paused")
            tidewheel("stop", "flow", "--kill")
        else:
            tidewheel("kill", "flow", "1/middle")
        eventually_told(lambda: status() == "stopped", "the innermost one is aborted")
        tidewheel("stop", "flow", "--now")


LARGE = r"""
[scheduling]
    [[graph]]
        R1 = fetch & spoil => post
        R1 = fetch => spoil
[runtime]
    [[fetch]]
        script = '''
            file=$CYLC_WORKFLOW_SHARE_DIR/rows
            echo good > "$file"
            printf '{"rows": {"$file": "%s"}}' "$file" > "$TIDEWHEEL_OUTPUTS"
        '''
    [[spoil]]
        script = SPOIL
    [[post]]
        workflow = ./post/
        [[[inputs]]]
            ROWS = fetch.rows
""".replace("'''", '"""')
POST = """#!jinja2
[scheduling]
    [[graph]]
        R1 = other => count
[runtime]
    [[other]]
        script = true
    [[count]]
        script = cat {{ ROWS }}
"""


@EVERYWHERE
def test_a_file_that_a_run_was_given_is_compared_by_the_job_that_reads_it(tidewheel):
    folder = define(tidewheel, flow=LARGE.replace("SPOIL", "true"), flow_post=POST)
    assert tidewheel("run", folder).status == 0
    assert tidewheel("log", "flow/run1/1/post/01", "1/count").out == "good\n"
    spoilt = LARGE.replace("SPOIL", 'echo evil > "$CYLC_WORKFLOW_SHARE_DIR/rows"')
    (tidewheel.folder / "flow" / "flow.cylc").write_text(spoilt)
    with tidewheel.started("run", folder, "--new") as run:
        run.read_until("1/post started")
        inside = "flow/run2/1/post/01"

        def said():
            return tidewheel("log", inside, "1/count", "--err").out

        seen = "which 1/fetch of flow/run2 returned, has changed since"
        eventually_told(lambda: seen in said(), "the job has compared it")
        assert tidewheel("log", inside, "1/other").status == 0
        tidewheel("stop", "flow", "--kill")
