"""Copies of logs of other hosts: what is written, how much, and where the latest points to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Refused
from tidewheel.runners.job_environment import home_id, known_home_id
from tidewheel.runners.job_logs import CopyPlace, add_to_copy, point_to_latest


@pytest.mark.slow
@given(
    log=st.binary(max_size=60),
    order=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40),
)
def test_whatever_order_chunks_come_in_the_copy_is_a_beginning_of_the_log(
    tmp_path_factory, log, order
):
    place = CopyPlace(tmp_path_factory.mktemp("copy"), ("a", "b"), "job.out")
    size = 0
    for offset, length in order:
        size = add_to_copy(place, offset, log[offset : offset + length]).size
        written = (place.root / "a/b/job.out").read_bytes()
        assert log.startswith(written) and len(written) == size
    assert add_to_copy(place, size, log[size:]).size == len(log)
    assert (place.root / "a/b/job.out").read_bytes() == log


def test_a_copy_that_has_become_too_large_ends_with_a_note(tmp_path):
    place = CopyPlace(tmp_path, ("a",), "job.out")
    assert not add_to_copy(place, 0, b"x" * 9, bytes_max=10).full
    assert add_to_copy(place, 9, b"y" * 5, bytes_max=10).full
    text = (tmp_path / "a/job.out").read_text()
    assert text.startswith("x" * 9 + "y\n[tidewheel: ") and text.count("[tidewheel") == 1
    again = add_to_copy(place, 14, b"z", bytes_max=10)
    assert again.full and (tmp_path / "a/job.out").read_text() == text


def test_folders_and_files_are_for_their_user_alone(tmp_path):
    """S31."""
    add_to_copy(CopyPlace(tmp_path, ("a", "b"), "job.out"), 0, b"x")
    modes = [(tmp_path / one).stat().st_mode & 0o777 for one in ("a", "a/b", "a/b/job.out")]
    assert modes == [0o700, 0o700, 0o600]


def test_the_link_to_the_latest_never_goes_back(tmp_path):
    for submit, latest in [
        ("01", "01"),
        ("03", "03"),
        ("02", "03"),
        ("99", "99"),
        ("100", "100"),
    ]:
        add_to_copy(CopyPlace(tmp_path, ("foo", submit), "job.out"), 0, b"x")
        point_to_latest(tmp_path, ("foo", submit), "NN")
        assert (tmp_path / "foo/NN").readlink().name == latest
    assert (tmp_path / "foo/NN/job.out").read_bytes() == b"x"


def test_what_is_no_link_is_left_alone(tmp_path):
    add_to_copy(CopyPlace(tmp_path, ("foo", "01"), "job.out"), 0, b"x")
    (tmp_path / "foo/NN").write_text("mine")
    point_to_latest(tmp_path, ("foo", "01"), "NN")
    assert (tmp_path / "foo/NN").read_text() == "mine"


def test_a_link_among_the_folders_is_not_followed(tmp_path):
    """S11."""
    (tmp_path / "out").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a").symlink_to(tmp_path / "out")
    with pytest.raises(Refused):
        add_to_copy(CopyPlace(tmp_path / "root", ("a", "b"), "job.out"), 0, b"x")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_home_has_one_identity(tmp_path):
    assert known_home_id(tmp_path) is None
    first = home_id(tmp_path)
    assert first == home_id(tmp_path) == known_home_id(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["home.id"]
    assert home_id(tmp_path / "another") != first
