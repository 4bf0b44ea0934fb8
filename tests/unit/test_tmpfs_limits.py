"""A tmpfs takes from the memory of the whole host, so each has a size."""

import pytest

from tidewheel.runners.containers.policy import with_limits

LIMIT = "size=1073741824"


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("/run", f"/run:{LIMIT}"),
        ("/run:mode=700", f"/run:mode=700,{LIMIT}"),
        ("/run:size=64m", "/run:size=64m"),
        ("/run:mode=700,size=64m", "/run:mode=700,size=64m"),
        ("/size=x", f"/size=x:{LIMIT}"),
        ("/size=64m:mode=700", f"/size=64m:mode=700,{LIMIT}"),
        ("/run:mode=700,xsize=1", f"/run:mode=700,xsize=1,{LIMIT}"),
        ("/run:size=", f"/run:size=,{LIMIT}"),  # of two the engine takes the last
    ],
)
def test_each_tmpfs_has_a_size_among_its_options(written, made):
    for given in (written, [written]):
        document = {"services": {"a": {"tmpfs": given}}}
        with_limits(document)
        assert document["services"]["a"]["tmpfs"] == [made]
