"""Settings as seen from another process: ``SettingsService`` over the gateway's socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from goclaw_py.cli.client.calls import Params, Remote, RequestSender, call
from goclaw_py.operations.settings import SettingChange, SettingsService, SettingsView
from goclaw_py.web.api import wire


class RemoteSettings(Remote):
    """Implements ``operations.settings.SettingsService``; every method may raise ``NoGateway``."""

    def __init__(self, ask: RequestSender) -> None:
        self._ask = ask

    view = call(SettingsService.view, "GET /api/settings")
    history = call(SettingsService.history, "GET /api/settings/history")

    async def change(self, changes: Sequence[SettingChange], *, source: str) -> SettingsView:
        """Edit settings. The gateway knows from where the request comes."""
        del source
        body = {"changes": [asdict(change) for change in changes]}
        return wire.read(SettingsView, await self._ask("POST", "/api/settings", body))

    async def send(
        self, method: str, path: str, body: object = None, params: Params | None = None
    ) -> bytes:
        return await self._ask(method, path, body, params)
