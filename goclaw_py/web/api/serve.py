"""Routes of operations that say themselves where they are served: see ``operations.declare``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter

from goclaw_py.operations.declare import declared

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


def serve(
    api: APIRouter, operation: Callable[..., Any], **options: Any
) -> Callable[[_Handler], _Handler]:
    """Let a function answer requests for an operation; ``options`` are those of a route."""
    wanted = declared(operation)
    verb, path = wanted.route.split()

    def add(handler: _Handler) -> _Handler:
        if wanted.former:
            hidden = {**options, "include_in_schema": False}
            api.add_api_route(wanted.former, handler, methods=[verb], **hidden)
        return api.api_route(path, methods=[verb], **options)(handler)

    return add
