"""Several models, each of which is asked where the one before cannot answer. Heavy imports."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings

_log = logging.getLogger(__name__)


class Fallback(FallbackModel):
    """Asks the next model where one fails before its first word; after it there is no going back.

    The library keeps with each answer what the models before it have said. That is in the log; in
    the history, where the answer is stored, it would be a place for parts of keys (SPEC SEC-2).
    """

    def __init__(self, first: Model, *others: Model) -> None:
        """Take the models in the order in which they are asked."""
        super().__init__(first, *others, fallback_on=_falls_back)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask for an answer in one piece."""
        answer = await super().request(messages, model_settings, model_request_parameters)
        return replace(answer, failed_attempts=None)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask for an answer word by word."""
        asked = super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        )
        async with asked as stream:
            stream.failed_attempts = None
            yield stream


def _falls_back(error: Exception) -> bool:
    """Whether another model may be able to answer. The operator learns that this one was not."""
    if not isinstance(error, ModelAPIError):
        return False
    facts = {"model": error.model_name, "error": type(error).__name__}
    _log.warning("model_failed", extra=facts)
    return True
