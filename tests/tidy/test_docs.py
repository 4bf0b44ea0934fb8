"""What the documentation says is what the program does."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


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


def test_the_states_of_the_web_page_look_as_on_the_command_line():
    writer = writer_of("write_palette", "web")
    assert writer.PLACE.read_text(encoding="utf-8") == writer.text(), (
        "run: .venv/bin/python web/write_palette.py"
    )


def test_the_files_for_editors_are_what_the_table_of_items_says():
    writer = writer_of("write_editor_files")
    for name, text in writer.files().items():
        assert (writer.FOLDER / name).read_text(encoding="utf-8") == text, (
            "run: .venv/bin/python docs/write_editor_files.py"
        )


def test_every_finding_about_sip_definitions_is_on_their_page():
    """Those about requests for blocks are on the page of these."""
    pages = (ROOT / "docs/sip.md", ROOT / "docs/blocks.md")
    page = "".join(path.read_text(encoding="utf-8") for path in pages)
    sources = (ROOT / "src/tidewheel/sources/sip").glob("*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'\.(?:error|warning|note)\(\s*"([a-z-]+)"', text))
    codes |= set(re.findall(r'code(?:, \w+)* = "([a-z-]+)"', text))
    assert len(codes) > 50
    assert sorted(code for code in codes if code not in page) == []


def test_every_local_link_leads_somewhere():
    dead = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert dead == []


def test_every_setting_from_the_environment_is_documented():
    config = (ROOT / "src/tidewheel/config.py").read_text(encoding="utf-8")
    documented = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    missing = set(re.findall(r"TIDEWHEEL_[A-Z_]+", config)) - set(
        re.findall(r"TIDEWHEEL_[A-Z_]+", documented)
    )
    assert missing - {"TIDEWHEEL_"} == set()
