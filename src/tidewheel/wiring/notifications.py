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
    from tidewheel.services.notifications.delivery import DeliveryMeans
    from tidewheel.services.notifications.notifier import NotifierService
    from tidewheel.services.service import OnReport


def build_notifier(
    store: Store, home: Path, smtp: str, on_report: OnReport | None = None
) -> NotifierService:
    """Whoever tells what the rules in this state directory want told."""
    from tidewheel.services.notifications.notifier import NotifierService, NotifierSettings

    make_private_directory(home)
    settings = NotifierSettings(
        rules=home / RULES_FILE,
        home=home,
        process=this_process(),
        is_alive=is_process_alive,
        means=notification_means(home, smtp),
    )
    return NotifierService(store, settings, surroundings(on_report))


def notification_desk(store: Store, home: Path, smtp: str) -> BringsNotifications:
    """Rules and messages of a store, or of the server that it stands for."""
    from tidewheel.ports.runs import BringsNotifications
    from tidewheel.services.notifications.admin import NotificationAdmin

    if isinstance(store, BringsNotifications):
        return store
    return NotificationAdmin(store, home / RULES_FILE, notification_means(home, smtp))


def notification_means(home: Path, smtp: str) -> DeliveryMeans:
    """What messages are sent with from this process."""
    from tidewheel.runners.job_environment import inherited_environment
    from tidewheel.services.notifications.delivery import DeliveryMeans

    return DeliveryMeans(
        directory=home, smtp=smtp, environment=inherited_environment(os.environ)
    )
