"""How long a stage is prepared, and how long it runs."""

import asyncio

from tidewheel.runners.containers.job_clocks import JobClocks, read_clocks
from tidewheel.runners.containers.project import Phase, ProjectPart

AT_ONCE, LONG = 1e-9, 600.0


def part(phase):
    return ProjectPart(id="id", service="a", phase=phase)


def with_clocks(path, check, limit=LONG):
    async def run():
        return await check(JobClocks(path, limit))

    return asyncio.run(run())


def judged(path, limit, *looks):
    """What is said at the last of these looks, each of which shows a part in a phase."""

    async def check(clocks):
        return [clocks.judge_preparation([part(phase)]) for phase in looks][-1]

    return with_clocks(path, check, limit)


def test_preparation_has_a_limit_of_its_own_that_its_words_name(tmp_path):
    end = judged(tmp_path, AT_ONCE, Phase.PREPARING, Phase.PREPARING)
    assert end.error.code == "prepare"
    assert "service a" in end.error.description
    assert "--prepare-limit" in end.error.description
    assert judged(tmp_path, LONG, Phase.PREPARING, Phase.PREPARING) is None


def test_to_wait_for_a_node_is_no_preparation(tmp_path):
    waits = (Phase.PENDING, Phase.PENDING, Phase.PREPARING, Phase.PENDING, Phase.PREPARING)
    assert judged(tmp_path, AT_ONCE, *waits) is None


def test_an_adopter_goes_on_counting_the_preparation(tmp_path):
    assert judged(tmp_path, AT_ONCE, Phase.PREPARING) is None
    assert judged(tmp_path, AT_ONCE, Phase.PREPARING).error.code == "prepare"


def test_who_has_begun_is_not_prepared_any_more(tmp_path):
    async def check(clocks):
        clocks.begin()
        return [clocks.judge_preparation([part(Phase.PREPARING)]) for _ in range(2)]

    assert with_clocks(tmp_path, check, AT_ONCE) == [None, None]


def test_an_adopter_knows_since_when_the_job_runs(tmp_path):
    async def begin(clocks):
        assert not clocks.has_begun
        clocks.begin(100.0)
        return await clocks.begun()

    async def adopt(clocks):
        assert clocks.has_begun
        return await clocks.begun()

    first = with_clocks(tmp_path, begin)
    assert 100.0 <= first <= with_clocks(tmp_path, adopt)


def test_a_file_that_nobody_can_read_says_nothing(tmp_path):
    (tmp_path / "job.clocks").write_text("[nonsense")
    assert read_clocks(tmp_path).begun_at is None
