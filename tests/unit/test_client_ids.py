"""Ids that clients make up."""

import uuid

from tidewheel.client.async_client import TimeOrderedIds


def test_ids_are_version_7_uuids_in_the_order_of_their_making():
    new_id = TimeOrderedIds()
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert {uuid.UUID(one).variant for one in ids} == {uuid.RFC_4122}
