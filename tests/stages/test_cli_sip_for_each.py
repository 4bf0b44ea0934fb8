"""Stages for each element of a list, and stages that are switched off, as people see them."""

import json
import signal

import pytest

from tests.support.patience import eventually_told
from tests.support.sips import definition, stage
from tests.support.workflow_folders import put

pytestmark = pytest.mark.req("R011-9")

FILE = "beams-1.0.0.yaml.j2"
FILES = {
    FILE: definition(
        stage("find"),
        stage("image", more="for_each: find.beams"),
        stage("plot", more="for_each: image\nwhen: '{{ plots }}'"),
        stage("site", more="for_each: '{{ sites }}'"),
        stage("join", "image complete", "plot complete", "site complete"),
    ),
    "stages/find/1.0.0/script.sh": """
echo "{\\"beams\\": $PARAMETER_found}" > "$TIDEWHEEL_OUTPUTS"
""",
    "stages/find/1.0.0/parameters.yaml": 'found: \'["a", "b c", {"x": 1}]\'\n',
    "stages/find/1.0.0/outputs.yaml": "[beams]\n",
    "stages/image/1.0.0/command.yaml.j2": "[bash, stages/image/1.0.0/image.sh, '{{ item }}']\n",
    "stages/image/1.0.0/script.sh": """
echo "imaging $(printf %s "$TIDEWHEEL_PARAMETERS" | python3 -c '
import json, sys
print(json.dumps(json.load(sys.stdin)["item"]))')"
echo "{\\"path\\": \\"out of $CYLC_TASK_NAME\\"}" > "$TIDEWHEEL_OUTPUTS"
""",
    "stages/image/1.0.0/outputs.yaml": "[path]\n",
    "stages/plot/1.0.0/command.yaml.j2": "[echo, '{{ stage.index }}: {{ path }}']\n",
    "stages/plot/1.0.0/parameters.yaml": "path:\nplots: true\n",
    "stages/site/1.0.0/command.yaml.j2": "[echo, 'at {{ item }}']\n",
    "stages/site/1.0.0/parameters.yaml": "sites: [north, south]\n",
    "stages/join/1.0.0/command.yaml.j2": "[echo, '{{ path }}']\n",
    "stages/join/1.0.0/parameters.yaml": "path:\n",
}
del FILES["stages/image/1.0.0/command.yaml.j2"]


@pytest.fixture
def flow(tidewheel):
    put(tidewheel.folder, FILES)
    return FILE


def printed(tidewheel, task):
    return tidewheel("log", "beams", task).out


@pytest.mark.req("R007-7")
def test_each_element_runs_with_its_item_and_the_join_gets_all_outputs(tidewheel, flow):
    answer = tidewheel("run", flow)
    assert (answer.status, answer.err) == (0, "")
    assert printed(tidewheel, "1/image_item1") == 'imaging "b c"\n'
    assert printed(tidewheel, "1/image_item2") == 'imaging {"x": 1}\n'
    assert printed(tidewheel, "1/plot_item2") == "2: out of image_item2\n"
    assert printed(tidewheel, "1/site_item1") == "at south\n"
    assert json.loads(printed(tidewheel, "1/join")) == [
        f"out of image_item{index}" for index in range(3)
    ]


def test_lists_without_elements_complete_the_stages_after_them(tidewheel, flow):
    assert tidewheel("run", flow, "-p", 'found="[]"', "-p", "sites=[]").status == 0
    assert printed(tidewheel, "1/join") == "[]\n"
    assert "image_item" not in tidewheel("show", "beams").out


def test_a_stage_that_is_switched_off_is_shown_as_that(tidewheel, flow):
    answer = tidewheel("run", flow, "-p", "plots=false")
    assert answer.status == 0
    assert " plot switched off\n" in answer.out
    assert "plot started" not in answer.out
    assert "7 succeeded, 1 switched off" in answer.out
    assert printed(tidewheel, "1/join").startswith("[")
    assert "switched off" in tidewheel("show", "beams", "1/plot").out
    assert "plot_item0" not in tidewheel("tree", "beams").out


def test_validate_config_graph_and_rehearse_know_lists(tidewheel, flow):
    assert "it can be registered and run" in tidewheel("validate", flow).out
    refused = tidewheel("validate", flow, "-p", "sites=north")
    assert refused.status != 0
    assert f"{FILE}:" in refused.out + refused.err
    assert 'for_each of stage site is "north", the value of sites' in refused.out + refused.err
    shown = tidewheel("config", flow, "--task", "image").out
    assert "for_each = find.beams" in shown
    assert "image (for each)" in tidewheel("graph", flow).out
    played = tidewheel("rehearse", flow, "-p", 'sites=["x", "y", "z"]').out
    assert "find returns beams, a list of 2 elements" in played
    assert "list@site returns" not in played


def test_a_misspelt_parameter_of_a_list_is_refused(tidewheel, flow):
    answer = tidewheel("run", flow, "-p", "site_list=[1]")
    assert answer.status != 0
    assert "the parameter 'site_list' changes nothing" in answer.out + answer.err


@pytest.mark.req("R007-2")
def test_a_run_that_is_killed_again_and_again_runs_each_element_once(tidewheel, flow):
    found, gate = json.dumps(list(range(20))), tidewheel.folder / "gate"
    words = ["run", flow, "-p", f"found={json.dumps(found)}"]
    waits = f"[bash, -c, 'until test -e {gate}; do sleep 0.05; done']\n"
    put(tidewheel.folder, {"stages/plot/1.0.0/command.yaml.j2": waits})
    for heard in ("find succeeded", "image_item1", "plot_item", "plot_item1"):
        with tidewheel.started(*words) as run:
            run.read_until(heard)
            run.send(signal.SIGKILL)
            run.wait()
    gate.touch()
    with tidewheel.started(*words) as run:
        run.read_until("completed")
    paths = json.loads(printed(tidewheel, "1/join"))
    assert paths == [f"out of image_item{index}" for index in range(20)]


SBI = """
id: SBI-20261115-sip-1
version: 2.0
scheduling_block: {id: SB-1}
processing_blocks:
  - id: PB-20261115-sip-1
    type: offline
    workflow: {id: beams, version: 1.0.0, parameters: {plots: false, sites: [one]}}
  - id: PB-20261115-sip-2
    type: offline
    workflow: {id: beams, version: 1.0.0, parameters: {found: nonsense}}
"""
WRONG = SBI.replace("sites: [one]", "sites: one").replace("found: nonsense", "plots: perhaps")


def test_blocks_show_a_stage_with_its_elements_as_one(tidewheel, flow):
    assert tidewheel("register", flow).out.startswith("beams/1.0.0: registered; it can run")
    (tidewheel.folder / "wrong.yaml").write_text(WRONG)
    wrong = tidewheel("sbi", "submit", "wrong.yaml")
    assert wrong.status != 0
    assert (
        'for_each of stage site is "one", the value of sites: that is not a list'
        in wrong.out + wrong.err
    )
    assert "when of stage plot is 'perhaps'" in wrong.out + wrong.err
    (tidewheel.folder / "request.yaml").write_text(SBI)
    assert tidewheel("sbi", "submit", "request.yaml").status == 0
    waiting = tidewheel("blocks", "show", "PB-20261115-sip-1", "--json").json["stages"]
    assert [(one["stage"], one["state"]) for one in waiting] == [
        (name, "waiting") for name in ("find", "image", "plot", "site", "join")
    ]
    with (
        tidewheel.started("scheduler", TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS="0.1"),
        tidewheel.started("worker", "--queue", "run:*"),
    ):
        eventually_told(lambda: ended(tidewheel), "both blocks have ended")
    shown = tidewheel("blocks", "show", "PB-20261115-sip-1", "--json").json
    told = {one["stage"]: (one["status"], one["remarks"]) for one in shown["stages"]}
    assert told == {
        "find": ("succeeded", []),
        "image": ("succeeded", ["3 of 3 succeeded"]),
        "plot": ("switched_off", ["switched off"]),
        "site": ("succeeded", ["1 of 1 succeeded"]),
        "join": ("succeeded", []),
    }
    page = tidewheel("blocks", "show", "PB-20261115-sip-1").out
    assert "succeeded (3 of 3 succeeded)" in page
    assert "list@" not in page
    failed = tidewheel("blocks", "show", "PB-20261115-sip-2").out
    assert "its elements are known when find succeeds" in failed


def ended(tidewheel):
    found = tidewheel("blocks", "--json").json["blocks"]
    return all(one["status"] in ("completed", "failed") for one in found)


def test_on_postgresql_it_is_the_same(tidewheel, flow, postgres_url):
    tidewheel.environment["TIDEWHEEL_STORE"] = postgres_url
    assert tidewheel("run", flow).status == 0
    assert printed(tidewheel, "1/plot_item1") == "1: out of image_item1\n"
    assert len(json.loads(printed(tidewheel, "1/join"))) == 3
