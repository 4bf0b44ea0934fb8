"""Files of a home that several workers write at the same time."""

from concurrent.futures import ThreadPoolExecutor

from tidewheel.runners.job_directory import link_whole, write_whole

WRITERS = 8
TIMES = 100
CONTENTS = (b"one" * 20_000, b"two" * 20_000)


def test_a_file_that_many_write_at_once_is_always_whole(tmp_path):
    path = tmp_path / "program"

    def writes(number):
        for at in range(TIMES):
            write_whole(path, CONTENTS[(number + at) % 2], mode=0o600)
            assert path.read_bytes() in CONTENTS

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(writes, range(WRITERS)))
    assert [one.name for one in tmp_path.iterdir()] == ["program"]


def test_a_link_that_many_make_at_once_leads_to_one_of_their_targets(tmp_path):
    path, targets = tmp_path / "link", (tmp_path / "a", tmp_path / "b")

    def links(number):
        for at in range(TIMES):
            link_whole(path, targets[(number + at) % 2])
            assert path.readlink() in targets

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(links, range(WRITERS)))
    assert [one.name for one in tmp_path.iterdir()] == ["link"]
