"""Services of a run, as processes, when schedulers and workers are killed; on both stores."""

import pytest

from tests.support.patience import eventually
from tests.support.run_crew import ended, run_crew
from tests.support.sips import definition, stage

pytestmark = [pytest.mark.timeout(170), pytest.mark.req("R011-10")]
LONG_SECONDS = 90.0
SERVE = """\
trap 'echo ended >> {journal}; exit 0' TERM
echo began >> {journal}
while true; do sleep 0.1; done
"""
USE = "echo used >> {journal}\nuntil test -e {gate}; do sleep 0.1; done\n"


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with run_crew(tmp_path, url) as crew:
        yield crew


def test_a_service_outlives_its_scheduler_and_worker_and_is_ended_once_when_it_is_used_no_more(
    crew, tmp_path
):
    journal, gate = tmp_path / "said", tmp_path / "gate"
    scripts = {"engine": SERVE, "use": USE}
    for name, script in scripts.items():
        folder = tmp_path / "flow" / "stages" / name / "1.0.0"
        folder.mkdir(parents=True)
        (folder / "script.sh").write_text(script.format(journal=journal, gate=gate))
    file = tmp_path / "flow" / "flow-1.0.0.yaml"
    file.write_text(
        definition(stage("engine", more="until: use"), stage("use", "engine running"))
    )
    first = crew.run("flow/flow-1.0.0.yaml")

    def said():
        return journal.read_text().split() if journal.exists() else []

    eventually(lambda: said() == ["began", "used"], "the service is used", LONG_SECONDS)
    first.kill()
    second = crew.run("flow/flow-1.0.0.yaml")
    gate.touch()
    assert ended(second, LONG_SECONDS) == 0, second.log
    assert said() == ["began", "used", "ended"]
    assert dict(crew.final_state("flow/run1")["submissions"]) == {
        "flow/run1/1/engine/1": "cancelled",
        "flow/run1/1/use/1": "succeeded",
    }
