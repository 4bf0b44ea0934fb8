"""A run that is stalled two levels down (issue 19), found from the outermost one."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.places import address

FLOWS = {
    ".": "R1 = middle\n[runtime]\n[[middle]]\nworkflow = ./middle/\n",
    "middle": "R1 = inner\n[runtime]\n[[inner]]\nworkflow = ./inner/\n",
    "middle/inner": "R1 = work\n[runtime]\n[[work]]\nscript = echo no beam today >&2; false\n",
}
INNERMOST = "outermost/run1/1/middle/01/1/inner/01"


def test_links_lead_from_the_outermost_run_to_the_task_that_failed(site, page):
    for name, text in FLOWS.items():
        folder = Path(site.tidewheel.folder, "outermost", name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "flow.cylc").write_text(f"[scheduling]\n[[graph]]\n{text}")
    begun = site.tidewheel("run", "outermost", "--server", site.url, "--detach")
    assert begun.status == 0, begun
    page.goto(address(site, "outermost/run1"))
    alert = page.get_by_role("alert").filter(has_text="Needs action")
    expect(alert).to_contain_text("something in it is stuck")
    alert.get_by_role("button", name="1/middle").click()
    panel = page.get_by_role("complementary", name="Task 1/middle")
    expect(panel).to_contain_text(f"{INNERMOST}: 1/work failed and is incomplete")
    panel.get_by_role("link", name="outermost/run1/1/middle/01", exact=True).click()
    alert.get_by_role("button", name="1/inner").click()
    panel = page.get_by_role("complementary", name="Task 1/inner")
    panel.get_by_role("link", name=INNERMOST, exact=True).click()
    stalled = page.get_by_role("alert").filter(has_text="Stalled")
    stalled.get_by_role("button", name="1/work", exact=True).click()
    panel = page.get_by_role("complementary", name="Task 1/work")
    panel.get_by_role("button", name="log: err", exact=True).click()
    expect(page.get_by_role("log")).to_contain_text(re.compile("no beam today"))
