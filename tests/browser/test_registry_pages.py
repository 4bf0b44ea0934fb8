"""Workflows, requests and notifications in a real browser: registered, drawn, asked for."""

import io
import json
import re
import zipfile
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.test_manners import AXE, barriers
from tests.support.http_server import Caller, in_path
from tests.support.sips import definition, stage
from tests.support.workflow_folders import sip_files

HOSTILE = "<img src=x onerror=window.hit=1>"
BAD = f"[scheduling]\n    [[graph]]\n        R1 = a => => b\n    {HOSTILE}\n"
BLOCKS = {
    "id": "SBI-20261115-test-night",
    "version": "2.0",
    "processing_blocks": [
        {"id": "PB-20261115-test-one", "type": "offline", "workflow": {"id": "night"}},
        {
            "id": "PB-20261115-test-two",
            "type": "offline",
            "workflow": {"id": "night"},
            "dependencies": [
                {
                    "type": "processing_block",
                    "value": "PB-20261115-test-one",
                    "condition": "failed",
                }
            ],
        },
    ],
}


def zipped(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return {"name": "vis.zip", "mimeType": "application/zip", "buffer": raw.getvalue()}


def dropped(page, text):
    return page.evaluate_handle(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "flow.cylc"));
            return carried;
        }""",
        text,
    )


def test_a_bundle_is_refused_with_findings_or_registered_drawn_and_run(site, page):
    page.goto(f"{site.url}/workflows")
    intake = page.get_by_role("region", name="Register a bundle")
    bundle = page.get_by_test_id("bundle")
    expect(intake).to_be_visible()
    page.locator("body").dispatch_event("drop", {"dataTransfer": dropped(page, BAD)})
    expect(intake.get_by_role("alert")).to_contain_text("a task is missing before '=>'")
    expect(intake.get_by_role("alert")).to_contain_text("flow.cylc:3")
    assert page.evaluate("window.hit") is None
    bundle.set_input_files(zipped(sip_files()))
    expect(intake.get_by_role("alert")).to_have_count(0)
    intake.get_by_role("link", name="vis/1.0.0").click()
    expect(page.locator(".step-box")).to_have_text(["a", "b"])
    expect(page.locator(".dependency")).to_have_count(1)
    form = page.get_by_role("form", name="Request a run")
    run = form.get_by_role("button", name="Run", exact=True)
    expect(form).to_contain_text("Still needed: site")
    expect(run).to_be_disabled()
    form.get_by_label("site").fill("[low")
    expect(form).to_contain_text("This begins like JSON, but is not valid JSON.")
    form.get_by_label("site").fill("low")
    form.get_by_role("button", name="Check").click()
    expect(form).to_contain_text("It can run with these values.")
    run.click()
    page.wait_for_url("**/runs/vis%2Frun1")
    expect(page.locator(".run-header")).to_contain_text("completed")
    page.goto(f"{site.url}/workflows/vis")
    page.wait_for_url("**/workflows/vis/1.0.0")
    runs = page.get_by_role("region", name="Runs")
    expect(runs).to_contain_text("vis/run1")
    expect(runs).to_contain_text(re.compile("usually take .+took [0-9.]+ m?s", re.DOTALL))
    page.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog", name="Remove vis/1.0.0")
    expect(dialog).to_contain_text(
        "Runs of this version are not affected, even if they are still running."
    )
    dialog.get_by_role("button", name="Remove 1.0.0").click()
    expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="vis", exact=True)).to_have_count(0)


FLOW = """\
[scheduling]
    initial cycle point = 2026
    final cycle point = 2026
    [[graph]]
        P1Y = "a => b"  # yearly
[runtime]
    [[a, b]]
        script = true
    [[nobody]]
"""


def test_files_of_a_version_are_read_with_findings_at_their_lines_and_links_to_a_line(
    site, page
):
    caller = site.caller()
    files = {"flow.cylc": FLOW, "bin/go": f"#!/bin/sh\necho '{HOSTILE}'\n"}
    for version, text in (("1", FLOW), ("2", FLOW.replace("a => b", "b => a"))):
        body = {"files": files | {"flow.cylc": text}, "name": "reads", "version": version}
        assert caller.post("/workflows", body).status == 201
    page.goto(f"{site.url}/workflows/reads/1")
    shown = page.get_by_role("region", name="Definition", exact=True)
    text = page.get_by_role("region", name="Text of flow.cylc")
    expect(text.get_by_role("listitem")).to_have_count(FLOW.count("\n") + 1)
    expect(text.locator(".code-section").first).to_have_text("[scheduling]")
    expect(text.locator(".code-comment")).to_have_text("# yearly")
    found = page.get_by_role("region", name="What was found")
    found.get_by_role("button", name="flow.cylc:").first.click()
    expect(page).to_have_url(re.compile(r"(?=.*file=flow\.cylc).*line=\d+"))
    asked = text.locator("[aria-current=location]")
    expect(asked.locator(".line-finding")).to_be_visible()
    text.get_by_role("button", name="Link to line 5").click()
    page.reload()
    expect(asked).to_contain_text("yearly")
    shown.get_by_role("button", name="bin/go").click()
    expect(page.get_by_role("region", name="Text of bin/go")).to_contain_text(HOSTILE)
    assert page.evaluate("window.hit") is None


def test_versions_say_who_registered_them_and_are_compared_line_by_line(site, page):
    caller = site.caller()
    for version, text in (("1", FLOW), ("2", FLOW.replace("a => b", "b => a"))):
        body = {"files": {"flow.cylc": text}, "name": "twice", "version": version}
        assert caller.post("/workflows", body).status == 201
    page.goto(f"{site.url}/workflows/twice/1")
    versions = page.get_by_role("region", name="Versions")
    expect(versions.get_by_role("listitem").first).to_contain_text("by ")
    versions.get_by_role("button", name="Compare with 2").click()
    diff = page.get_by_role("region", name="From 1 to 2")
    expect(diff.locator(".removed")).to_contain_text('-        P1Y = "a => b"')
    expect(diff.locator(".added")).to_contain_text('+        P1Y = "b => a"')
    expect(page).to_have_url(re.compile("against=2"))


def test_a_run_is_started_with_options_and_its_definition_is_read(site, page):
    caller = site.caller()
    body = {"files": {"flow.cylc": FLOW}, "name": "opts", "version": "1"}
    assert caller.post("/workflows", body).status == 201
    page.goto(f"{site.url}/workflows/opts/1")
    form = page.get_by_role("form", name="Request a run")
    form.get_by_text("Points and mode").click()
    form.get_by_label("Initial point").fill("soon")
    run = form.get_by_role("button", name="Run", exact=True)
    run.click()
    about_point = form.get_by_label("Initial point")
    expect(about_point).to_have_accessible_description(re.compile("soon"))
    form.get_by_label("Initial point").fill("2025")
    form.get_by_label("Mode").select_option("simulation")
    form.get_by_label("start paused").check()
    run.click()
    page.wait_for_url("**/runs/opts%2Frun1")
    facts = caller.get("/runs/opts%2Frun1/facts").json["run"]
    said = {name: facts["options"][name] for name in ("initial", "mode", "paused")}
    assert said == {"initial": "2025", "mode": "simulation", "paused": True}
    page.goto(f"{site.url}/workflows/opts/1")
    page.get_by_role("region", name="Runs").get_by_role("link", name="definition").click()
    expect(page.get_by_role("heading", name="Definition of opts/run1")).to_be_visible()
    expect(page.get_by_role("region", name="Text of")).to_contain_text("initial cycle point")


def test_points_of_a_run_say_what_it_would_go_through_before_anything_runs(site, page):
    caller = site.caller()
    body = {"files": {"flow.cylc": FLOW}, "name": "ranges", "version": "1"}
    assert caller.post("/workflows", body).status == 201
    page.goto(f"{site.url}/workflows/ranges/1")
    form = page.get_by_role("form", name="Request a run")
    graph = page.get_by_role("region", name="Graph")
    form.get_by_text("Points and mode").click()
    form.get_by_label("Initial point").fill("2031")
    form.get_by_label("Final point").fill("2035")
    told = form.get_by_role("status", name="What would run with these points")
    expect(told).to_contain_text(re.compile("5 points, from 2031.* to 2035.*: 10 tasks"))
    expect(told.get_by_role("listitem")).to_have_text(["a 5", "b 5"])
    expect(graph.locator(".frame-box").first).to_contain_text("2031")
    expect(graph).to_contain_text("10 tasks at 5 points")
    form.get_by_label("Final point").fill("2030")
    for point in ("Initial point", "Final point"):
        told_wrong = re.compile("is before the initial one")
        expect(form.get_by_label(point)).to_have_accessible_description(told_wrong)
    expect(told).to_have_count(0)
    expect(graph).to_contain_text("10 tasks at 5 points")  # as it was
    form.get_by_role("button", name="Check").click()
    expect(form.locator(".verdict")).to_have_text("✖ It cannot run with these values:")
    for point in ("Initial point", "Final point"):
        form.get_by_label(point).fill("")
    expect(graph).not_to_contain_text("at 5 points")
    assert caller.get("/runs?workflow=ranges").json["runs"] == []


MEMBERS = [f"member_{number:02}" for number in range(12)]
FAMILIES = f"""
[scheduling]
    cycling mode = integer
    [[graph]]
        P1 = prep => ENSEMBLE:succeed-all => archive
[runtime]
    [[ENSEMBLE]]
    [[prep, archive]]
        script = true
    [[{", ".join(MEMBERS)}]]
        inherit = ENSEMBLE
        script = true
"""


def test_the_graph_of_a_definition_folds_families_colours_them_and_knows_no_states(site, page):
    body = {"files": {"flow.cylc": FAMILIES}, "name": "families", "version": "1"}
    assert site.caller().post("/workflows", body).status == 201
    page.goto(f"{site.url}/workflows/families/1")
    graph = page.get_by_role("region", name="Graph")
    expect(graph.get_by_label("Families", exact=True)).to_have_text("ENSEMBLE")
    folds = graph.locator(".step-box.folded")
    expect(folds.first).to_contain_text("ENSEMBLE12 tasks")
    expect(folds.first).to_have_class(re.compile("family-0"))
    expect(graph.locator(".step-box").filter(has_text="prep").first).to_be_visible()
    folds.first.click()
    expect(graph.locator(".step-box", has_text="member_").first).to_be_attached()
    graph.get_by_label("fold families").uncheck()
    expect(folds).to_have_count(0)
    expect(graph.locator(".bunch-box").first).to_contain_text("12 × member_… · 12 tasks")
    expect(graph).not_to_contain_text("future")


RELOADED = """#!jinja2
[scheduling]
    [[graph]]
        R1 = first => second
[runtime]
    [[first, second]]
        script = {{ WHAT | default("true") }}
    [[nobody]]
"""


def test_the_definition_of_a_run_has_its_findings_and_what_each_reload_changed(site, page):
    run = site.begin_paused("again", RELOADED)
    address = f"/runs/{in_path(run)}"
    page.goto(f"{site.url}{address}")
    page.get_by_role("link", name="definition").click()
    expect(page.get_by_role("heading", name=f"Definition of {run}")).to_be_visible()
    versions = page.get_by_role("region", name="Versions")
    expect(versions).to_contain_text("The definition was never reloaded")
    found = page.get_by_role("region", name="What was found")
    found.get_by_role("button", name="definition with templates expanded:").first.click()
    text = page.get_by_role("region", name="Text of definition with templates expanded")
    expect(text.locator("[aria-current=location] .line-finding")).to_be_visible()

    file = site.tidewheel.folder / "again" / "flow.cylc"
    file.write_text(RELOADED.replace("first => second", "second => first"))
    told = site.tidewheel("reload", run, "--server", site.url, "-s", 'WHAT="false"')
    assert told.status == 0, told
    page.reload()
    versions.get_by_role("button", name="What the reload to version 2 changed").click()
    diff = page.get_by_role("region", name="From 1 to 2")
    expect(diff.get_by_role("region", name="flow.cylc")).to_contain_text("+        R1 = second")
    rendered = diff.get_by_role("region", name="definition with templates expanded")
    expect(rendered).to_contain_text("+        script = false")
    expect(page).to_have_url(re.compile("reload=2"))

    held = site.tidewheel.state / "runs" / run / "flow.cylc"
    held.write_text(RELOADED.replace("=> second", f"=> second # {HOSTILE}"))
    page.goto(f"{site.url}{address}")
    page.get_by_role("button", name="Reload").click()
    would = page.get_by_role("dialog").get_by_role("region", name="flow.cylc")
    expect(would).to_contain_text(f"+        R1 = first => second # {HOSTILE}")
    assert page.evaluate("window.hit") is None


def test_each_stage_unfolds_to_what_it_needs_and_to_its_files_as_text(site, page):
    compose = f"services:\n  a: {{image: busybox, network_mode: host}}\n# {HOSTILE}\n"
    files = sip_files("dawn-1.0.0.yaml")
    del files["stages/a/1.0.0/command.yaml.j2"]
    files["stages/a/1.0.0/docker_compose.yaml"] = compose
    files["stages/a/1.0.0/outputs.yaml"] = "[beam]\n"
    files["stages/b/1.0.0/parameters.yaml"] = "beam:\n"
    made = site.caller().post("/workflows", {"files": files})
    assert made.status == 201, made.body
    page.goto(f"{site.url}/workflows/dawn/1.0.0")
    stages = page.get_by_role("region", name="Stages")
    expect(stages.get_by_role("group")).to_have_count(2)
    expect(stages).not_to_contain_text("docker_compose.yaml")
    stages.get_by_text("setup 1.0.0").click()
    expect(stages).to_contain_text("a worker that allows host-network")
    expect(stages.locator("pre").first).to_have_text(compose)
    expect(stages).to_contain_text("site required")
    expect(stages).to_contain_text("nodes = 4")
    stages.get_by_text("processing 1.0.0").click()
    expect(stages).to_contain_text("a complete")
    expect(stages).to_contain_text("beam given by a")
    expect(stages).to_contain_text("echo done")
    assert page.evaluate("window.hit") is None
    form = page.get_by_role("form", name="Request a run")
    form.get_by_label("site").fill("low")
    form.get_by_label("nodes").fill("9")
    form.get_by_role("button", name="Check").click()
    expect(stages).to_contain_text("nodes = 9")


def test_blocks_say_what_they_wait_for_and_are_aborted_knowingly(site, page):
    files = sip_files("night-1.0.0.yaml") | {
        "stages/a/1.0.0/parameters.yaml": "site: low\nnodes: 4\n"
    }
    assert site.caller().post("/workflows", {"files": files}).status == 201
    page.goto(f"{site.url}/requests")
    page.get_by_role("button", name="Post an instance").click()
    posting = page.get_by_role("form", name="Post an instance")
    posting.get_by_label("YAML or JSON").fill(json.dumps(BLOCKS))
    posting.get_by_role("button", name="Check").click()
    expect(posting).to_contain_text("would be accepted, nothing is stored: 2 blocks")
    posting.get_by_role("button", name="Post").click()
    expect(posting).to_contain_text("is requested: 2 blocks")
    two = page.get_by_role("button", name="PB-20261115-test-two")
    expect(two).to_contain_text("never begins")
    two.click()
    panel = page.get_by_role("complementary", name="Block PB-20261115-test-two")
    expect(panel).to_contain_text("It waits for something that can no longer happen")
    panel.get_by_role("button", name="Abort").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 stages that wait will not begin.")
    dialog.get_by_label("Reason, which others can read").fill("the first went well")
    dialog.get_by_role("button", name="Abort it").click()
    expect(panel).to_contain_text("the first went well")
    expect(panel.get_by_role("listitem").filter(has_text="aborted").first).to_be_visible()
    panel.get_by_text("What happened").click()
    expect(panel).to_contain_text("created SBI-20261115-test-night")
    objects = page.get_by_role("region", name="Buffer objects")
    objects.get_by_label("Name of an object").fill("calibration")
    objects.get_by_role("button", name="Post").click()
    objects.get_by_role("button", name="Remove calibration").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    expect(objects).to_contain_text("There are no buffer objects.")


def test_an_instance_shows_its_status_and_is_aborted_whole(site, page):
    files = sip_files("dusk-1.0.0.yaml") | {
        "dusk-1.0.0.yaml": definition(
            stage("a", "object:never present"), stage("b", "a complete")
        ),
        "stages/a/1.0.0/parameters.yaml": "site: low\nnodes: 4\n",
    }
    assert site.caller().post("/workflows", {"files": files}).status == 201
    text = json.dumps(BLOCKS | {"subarray_id": "7"}).replace("-test-", "-dusk-")
    asked = text.replace('"id": "night"', '"id": "dusk"').encode()
    assert site.caller().post("/sbis", asked).status == 201
    page.goto(f"{site.url}/requests")
    instance = page.get_by_role("region", name="SBI-20261115-dusk-night")
    expect(instance).to_contain_text("subarray 7")
    expect(instance).to_contain_text("waiting for object")
    expect(instance).to_contain_text("waiting for blocks")
    filtering = page.get_by_label("Filter blocks")
    filtering.fill("waiting for object")
    expect(instance.get_by_role("button", name="PB-20261115-dusk")).to_have_count(1)
    filtering.fill("")
    instance.get_by_role("button", name="Abort SBI-20261115-dusk-night").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 created, 1 running")
    dialog.get_by_label("Reason, which others can read").fill("clouds")
    dialog.get_by_role("button", name="Abort all its blocks").click()
    expect(instance).to_contain_text("2 aborted")
    expect(instance.get_by_role("button", name="Abort SBI-20261115-dusk-night")).to_have_count(
        0
    )


def test_rules_of_notifications_are_seen_and_tried_by_admins_alone(site, page, window):
    (site.tidewheel.state / "notify.toml").write_text(
        '[[rule]]\nname = "desk"\non = "stall"\nto = { command = ["true"] }\n'
    )
    page.get_by_role("link", name="Notifications").click()
    page.wait_for_url("**/notifications")
    rule = page.get_by_role("listitem").filter(has_text="desk").first
    expect(rule).to_be_visible()
    page.get_by_role("button", name="Test desk").click()
    expect(rule).to_contain_text("The test was sent.")
    assert window.complaints == []
    token = (
        site.caller()
        .post("/tokens", {"name": "looker", "scopes": ["read"], "names": ["*"]})
        .json["token"]
    )
    window.log_in(site.link(Caller(urlsplit(site.url).netloc, token)))
    expect(page.get_by_role("link", name="Requests")).to_be_visible()
    expect(page.get_by_role("link", name="Notifications")).to_have_count(0)
    page.goto(f"{site.url}/requests")
    expect(page.get_by_role("button", name="Post")).to_have_count(0)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in web/")
def test_nobody_is_kept_out_of_the_registry(site, page):
    files = sip_files("open-1.0.0.yaml")
    site.caller().post("/workflows", {"files": files})
    site.caller().post("/workflows", {"files": sip_files("open-0.9.0.yaml")})
    page.goto(f"{site.url}/workflows")
    expect(page.get_by_role("link", name="open", exact=True)).to_be_visible()
    found = {"workflows": barriers(page)}
    page.goto(f"{site.url}/workflows/open")
    expect(page.locator(".step-box")).to_have_count(2)
    page.get_by_role("region", name="Stages").get_by_text("setup 1.0.0").click()
    expect(page.get_by_role("region", name="Stages").locator("pre")).to_have_count(2)
    found["version"] = barriers(page)
    page.goto(f"{site.url}/requests")
    expect(page.get_by_role("region", name="Buffer objects")).to_be_visible()
    found["requests"] = barriers(page)
    assert not any(found.values()), found
