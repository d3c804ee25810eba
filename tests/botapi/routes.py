"""The controls over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, is_dataclass

from aiohttp import web

from tests.botapi.faults import Fault, FaultKind

_COMMANDS = frozenset(
    [
        "say",
        "press",
        "push",
        "add_group",
        "block",
        "fault",
        "clear_faults",
        "limit",
        "set_webhook",
        "revoke",
        "renumber",
        "transcript",
        "texts",
        "pending",
        "wait_calls",
        "wait_texts",
        "wait_confirmed",
    ]
)


def add_routes(app: web.Application, api: object) -> None:
    """Offer the controls of ``api`` under ``/control/<name>``; arguments and result are JSON."""

    async def control(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        arguments = await request.json()
        if name not in _COMMANDS:
            return web.json_response({"error": f"no control named {name}"}, status=404)
        if name == "fault":
            arguments = {"fault": Fault(**{**arguments, "kind": FaultKind(arguments["kind"])})}
        try:
            result = getattr(api, name)(**arguments)
            if asyncio.iscoroutine(result):
                result = await result
        except (TypeError, ValueError, KeyError, TimeoutError) as wrong:
            return web.json_response({"error": f"{name}: {wrong!r}"}, status=400)
        if isinstance(result, list):
            result = [
                asdict(entry) if is_dataclass(entry) and not isinstance(entry, type) else entry
                for entry in result
            ]
        return web.json_response({"result": result})

    app.router.add_post("/control/{name}", control)
