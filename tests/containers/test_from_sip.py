"""The page for people who come from SIP, typed from its first line to its last on an engine."""

import shutil

import pytest

from tests.support.container_engine import IMAGE
from tests.support.shell_session import ShellSession
from tests.support.written_examples import ROOT, blocks_of

PAGE = ROOT / "docs" / "howto" / "from_sip.md"
SHOWN_IMAGE = "busybox:1.36"
pytestmark = pytest.mark.timeout(170)


@pytest.fixture
def session(tmp_path, engine):
    shell = ShellSession(tmp_path)
    shutil.copytree(ROOT / "examples", shell.home / "examples")
    for file in (shell.home / "examples" / "from_sip").rglob("*.j2"):
        file.write_text(file.read_text().replace(SHOWN_IMAGE, IMAGE))
    for name, value in engine.environment.items():
        assert shell.type(f"export {name}='{value}'")[0] == 0
    yield shell
    shell.close()


@pytest.mark.req("R004-53", "R004-62")
def test_the_workflow_of_version_1_is_converted_registered_asked_for_and_run(session, engine):
    lines = [
        (command, block)
        for block in blocks_of(PAGE)
        if block.language == "console"
        for command in block.commands()
    ]
    assert any(" run PB-" in command.line for command, _ in lines)
    for command, block in lines:
        status, said = session.type(command.line)
        assert status == block.exit_status, f"$ {command.line}: {status}\n{said}"
        assert not command.answer or session.is_shown(command.answer, said), said
    assert engine.left_behind() == {}
