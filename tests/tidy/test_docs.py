"""What the documentation says is what the program does."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import yaml
from markdown.extensions.toc import slugify, unique

from tidewheel.cli.exit_codes import MEANINGS, ExitCode
from tidewheel.core.queue.status import TRANSITIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("tests/*.md"),
        *ROOT.glob("deploy/*.md"),
    ]
)


@pytest.fixture(autouse=True)
def beside_the_writers(monkeypatch):
    """Scripts of docs/ import each other."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield
    for name in ("drawing", "item_words", "write_charts"):
        sys.modules.pop(name, None)


def writer_of(name, folder="docs"):
    path = ROOT / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_what_the_commands_say():
    writer = writer_of("write_cli_page")
    assert writer.PAGE.read_text(encoding="utf-8") == writer.page(), (
        "run: .venv/bin/python docs/write_cli_page.py"
    )


def test_the_page_of_exit_codes_is_the_table_of_the_program():
    page = (ROOT / "docs" / "exit_codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([a-z]+) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [
        (str(code.value), code.name.lower(), meaning) for code, meaning in MEANINGS.items()
    ]
    assert list(MEANINGS) == list(ExitCode)


def test_the_states_of_the_web_page_look_as_on_the_command_line():
    writer = writer_of("write_palette", "web")
    assert writer.PLACE.read_text(encoding="utf-8") == writer.text(), (
        "run: .venv/bin/python web/write_palette.py"
    )


def test_the_types_of_the_web_page_are_those_of_the_server():
    writer = writer_of("write_types", "web")
    for file in (*writer.FILES, writer.STORE):
        path = writer.HERE / writer.FOLDER / file
        assert path.read_text(encoding="utf-8") == writer.text(file), (
            "run: .venv/bin/python web/write_types.py"
        )


def test_the_files_for_editors_are_what_the_table_of_items_says():
    writer = writer_of("write_editor_files")
    for name, text in writer.files().items():
        assert (writer.FOLDER / name).read_text(encoding="utf-8") == text, (
            "run: .venv/bin/python docs/write_editor_files.py"
        )


@pytest.mark.parametrize(
    "name", ["write_reference", "write_python_page", "write_pictures", "write_schema"]
)
def test_generated_pages_and_pictures_are_what_the_program_and_the_figures_say(name):
    writer = writer_of(name)
    folder = getattr(writer, "FOLDER", ROOT / "docs")
    stale = [
        one
        for one, text in writer.files().items()
        if not (folder / one).exists() or (folder / one).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: .venv/bin/python docs/write_all.py"


def test_the_picture_of_a_task_s_life_is_the_table_of_statuses():
    writer = writer_of("write_pictures")
    drawn = {(start, end) for start, end, _ in writer.STATUS_EDGES}
    drawn |= {writer.STATUS_CURVE, *writer.STATUS_NOTED}
    steps = {
        (str(start), str(end))
        for start, by_signal in TRANSITIONS.items()
        for end in by_signal.values()
    }
    assert {(start, end) for start, end in steps if start != end} == drawn


def test_every_finding_about_sip_definitions_is_on_their_page():
    """Those about requests for blocks, and about version 1, are on the pages of these."""
    pages = [ROOT / "docs" / name for name in ("sip.md", "blocks.md", "howto/from_sip.md")]
    page = "".join(path.read_text(encoding="utf-8") for path in pages)
    sources = (ROOT / "src/tidewheel/formats/sip").glob("*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'\.(?:error|warning|note)\(\s*"([a-z-]+)"', text))
    codes |= set(re.findall(r'code(?:, \w+)* = "([a-z-]+)"', text))
    assert len(codes) > 50
    assert sorted(code for code in codes if code not in page) == []


def anchors_of(page):
    """The anchors of a page's headings, as the site makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ +(.+)$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        unique(slugify(words, "-"), found)
    return found


def links_of(page):
    """Links and pictures outside of code and comments, as (target, anchor)."""
    unread = r"```.*?```|`[^`\n]*`|<!--.*?-->"
    text = re.sub(unread, "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text)


def test_every_local_link_and_anchor_leads_somewhere():
    dead = []
    made = {ROOT / path for path in writer_of("build_site").GENERATED}
    for page in PAGES:
        for target, anchor in links_of(page):
            if "://" in target:
                continue
            there = (page.parent / target).resolve() if target else page
            if there in made:
                continue
            missing = anchor and there.suffix == ".md" and anchor not in anchors_of(there)
            if not there.exists() or missing:
                dead.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert dead == []


def test_every_picture_of_the_web_page_is_there_by_day_and_by_night_and_small():
    shown = {
        (page.parent / source).resolve()
        for page in PAGES
        for source in re.findall(r'(?:src|srcset)="([^"]+\.png)"', page.read_text("utf-8"))
    }
    taken = set((ROOT / "docs/pictures/page").resolve().glob("*.png"))
    assert shown == taken
    assert {
        path.with_stem(path.stem.removesuffix("-dark") + "-dark") for path in taken
    } <= taken
    assert max(path.stat().st_size for path in taken) < 200_000


README_LINES_MAX = 120
# Users of the site need none of these.
INTERNAL = frozenset(
    {
        *("project/architecture.md", "project/tests.md", "STYLE.md", "fast_path.md"),
        *("requirements.md", "decisions/README.md"),
    }
)


def test_every_page_can_be_found_from_the_navigation():
    """Decisions are found from their own list, what is for contributors from their page."""
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = set(re.findall(r"[\w/]+\.md", str(navigation)))
    builder = writer_of("build_site")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    pages |= set(builder.ELSEWHERE.values())
    pages |= {path.removeprefix("docs/") for path in builder.GENERATED}
    decisions = {page for page in pages if page.startswith("decisions/0")}
    internal = {page for page in pages if page in INTERNAL}
    assert pages - decisions - internal == listed
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    elsewhere = {page: path for path, page in builder.ELSEWHERE.items()}
    for page in internal:
        assert f"({elsewhere.get(page, f'docs/{page}')})" in contributing
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    assert [page for page in decisions if Path(page).name not in index] == []


def test_the_readme_can_be_read_in_a_few_minutes():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES_MAX


def test_each_change_is_a_sentence_of_the_release_notes_under_its_kind():
    notes = writer_of("release_notes").page()
    kinds = re.split(r"^### (\w+)$", notes, flags=re.MULTILINE)[1:]
    listed = {kind.lower(): text for kind, text in zip(kinds[::2], kinds[1::2], strict=True)}
    for path in ROOT.glob("changes/*.*.md"):
        first = path.read_text(encoding="utf-8").split()[:6]
        assert " ".join(first) in listed[path.name.split(".")[-2]], path.name
    assert notes.index("### Changed") < notes.index("### Added") < notes.index("### Fixed")


def test_a_release_keeps_its_notes_and_begins_the_next(tmp_path, monkeypatch):
    notes = writer_of("release_notes")
    monkeypatch.setattr(notes, "CHANGES", tmp_path)
    monkeypatch.setattr(notes, "RELEASED", tmp_path / "released")
    (tmp_path / "7-gate.added.md").write_text("A gate, [here](docs/runs.md).\n")
    for version, change in (("0.9.0", "7-wall.fixed.md"), ("0.10.0", "8.changed.md")):
        monkeypatch.setattr(sys, "argv", ["release_notes.py", version])
        assert (notes.main(), notes.fragments(), notes.main()) == (0, [], 2)
        (tmp_path / change).write_text(f"After {version}.\n")
    page = notes.page().partition("## Not released yet")[2].split()
    assert " ".join(page) == (
        "### Changed - After 0.10.0. ## 0.10.0 ### Fixed - After 0.9.0. "
        "## 0.9.0 ### Added - A gate, [here](../runs.md)."
    )


def test_every_setting_from_the_environment_is_documented():
    config = (ROOT / "src/tidewheel/config.py").read_text(encoding="utf-8")
    documented = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    missing = set(re.findall(r"TIDEWHEEL_[A-Z_]+", config)) - set(
        re.findall(r"TIDEWHEEL_[A-Z_]+", documented)
    )
    assert missing - {"TIDEWHEEL_"} == set()
