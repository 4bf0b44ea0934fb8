"""Stores notebooks: texts of services, each held by one process at a time under a lease."""

from __future__ import annotations

from tidewheel.core.queue.lease import BODY_BYTES_MAX, Notebook
from tidewheel.store.rows import storable
from tidewheel.store.transaction import Transaction


def claim(
    tx: Transaction,
    name: str,
    owner: str,
    lease_seconds: float,
    *,
    dead_epoch: int | None = None,
) -> Notebook | None:
    """Leases a notebook under a new epoch, and returns it; None if another process holds it.

    A lease with the epoch ``dead_epoch`` counts as over, because its owner is known to be dead.
    """
    tx.rows("ensure_notebook", name=name)
    given = {"owner": storable(owner), "lease_seconds": lease_seconds}
    found = tx.records("claim_notebook", Notebook, name=name, dead_epoch=dead_epoch, **given)
    return found[0] if found else None


def write(tx: Transaction, name: str, epoch: int, body: str, lease_seconds: float) -> bool:
    """Writes a notebook and renews its lease; returns False if the epoch is out of date."""
    assert len(body) <= BODY_BYTES_MAX, f"the notebook {name} has {len(body)} bytes"
    given = {"name": name, "epoch": epoch, "body": storable(body)}
    return bool(tx.rows("write_notebook", **given, lease_seconds=lease_seconds))


def leave(tx: Transaction, name: str, epoch: int) -> None:
    """Ends the lease of a notebook if it is still held under this epoch."""
    tx.rows("leave_notebook", name=name, epoch=epoch)


def get(tx: Transaction, name: str) -> Notebook | None:
    """Returns a notebook without leasing it; None if there never was one of this name."""
    found = tx.records("get_notebook", Notebook, name=name)
    return found[0] if found else None
