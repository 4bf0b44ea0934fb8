"""Texts that services keep, each under a lease."""

from __future__ import annotations

from tidewheel.core.runs.notebooks import BODY_BYTES_MAX
from tidewheel.store.rows import storable
from tidewheel.store.transaction import Row, Transaction


def claim(tx: Transaction, name: str, owner: str, lease_seconds: float) -> list[Row]:
    """The notebook, for whoever is the first to ask while nobody holds it."""
    tx.rows("ensure_notebook", name=name)
    return tx.rows(
        "claim_notebook", name=name, owner=storable(owner), lease_seconds=lease_seconds
    )


def write(tx: Transaction, name: str, epoch: int, body: str, lease_seconds: float) -> bool:
    """Whether it is still held under this epoch, and so was written."""
    assert len(body) <= BODY_BYTES_MAX, f"the notebook {name} has {len(body)} bytes"
    given = {"name": name, "epoch": epoch, "body": storable(body)}
    return bool(tx.rows("write_notebook", **given, lease_seconds=lease_seconds))
