"""Building what tells people: a notifier, and the desk at which rules are seen and tried."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.config import RULES_FILE
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import is_process_alive, make_private_directory, this_process
from tidewheel.wiring.services import surroundings

if TYPE_CHECKING:
    from tidewheel.ports.runs import BringsNotifications
    from tidewheel.services.notifications.delivering import Means
    from tidewheel.services.notifications.notifier import Notifier
    from tidewheel.services.service import OnReport


def build_notifier(
    store: Store, home: Path, smtp: str, on_report: OnReport | None = None
) -> Notifier:
    """Whoever tells what the rules in this state directory want told."""
    from tidewheel.services.notifications.notifier import Notifier, NotifierSettings

    make_private_directory(home)
    settings = NotifierSettings(
        rules=home / RULES_FILE,
        home=home,
        process=this_process(),
        is_alive=is_process_alive,
        means=notification_means(home, smtp),
    )
    return Notifier(store, settings, surroundings(on_report))


def notification_desk(store: Store, home: Path, smtp: str) -> BringsNotifications:
    """Rules and messages of a store, or of the server that it stands for."""
    from tidewheel.ports.runs import BringsNotifications
    from tidewheel.services.notifications.desk import NotificationDesk

    if isinstance(store, BringsNotifications):
        return store
    return NotificationDesk(store, home / RULES_FILE, notification_means(home, smtp))


def notification_means(home: Path, smtp: str) -> Means:
    """What messages are sent with from this process."""
    from tidewheel.runners.job_environment import inherited_environment
    from tidewheel.services.notifications.delivering import Means

    return Means(directory=home, smtp=smtp, environment=inherited_environment(os.environ))
