"""Names the type of a store.

``Store`` is the class that does everything with a database: what a store can be asked is listed
there and nowhere else. It has this name here because loading it would load the whole store into
every client. A store behind a server (``store.remote``) has the same type; what only the
database can do, it refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidewheel.store.store import DatabaseStore as Store
else:
    Store = object

__all__ = ["Store"]
