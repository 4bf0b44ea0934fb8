"""Texts that services keep, each under a lease."""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.core.operator.notebooks import BODY_BYTES_MAX
from tidewheel.store.rows import storable
from tidewheel.store.transaction import Row, Transaction


class Claim(NamedTuple):
    """Who wants which notebook, for how long, and of whom it is known that it is dead."""

    name: str
    owner: str
    lease_seconds: float
    dead_epoch: int | None


def claim(tx: Transaction, asked: Claim) -> list[Row]:
    """The notebook, for whoever is the first to ask while nobody holds it."""
    tx.rows("ensure_notebook", name=asked.name)
    return tx.rows("claim_notebook", **asked._replace(owner=storable(asked.owner))._asdict())


def write(tx: Transaction, name: str, epoch: int, body: str, lease_seconds: float) -> bool:
    """Whether it is still held under this epoch, and so was written."""
    assert len(body) <= BODY_BYTES_MAX, f"the notebook {name} has {len(body)} bytes"
    given = {"name": name, "epoch": epoch, "body": storable(body)}
    return bool(tx.rows("write_notebook", **given, lease_seconds=lease_seconds))
