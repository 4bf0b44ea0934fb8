"""Notifications of a server: its rules, what it sent, and tests of them."""

from __future__ import annotations

from typing import Any

from tidewheel.store.remote.asking import Asking


class RemoteNotifications(Asking):
    """``ports.runs.BringsNotifications`` through a server."""

    async def notifications(self) -> dict[str, Any]:
        response = await self.transport.call("GET", "/notifications")
        return response.read(dict[str, Any])

    async def try_notifications(self, rule: str | None = None) -> dict[str, Any]:
        response = await self.transport.call("POST", "/notifications/test", body={"rule": rule})
        return response.read(dict[str, Any])
