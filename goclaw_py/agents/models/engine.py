"""One agent over pydantic-ai. Imports heavy libraries: only ``ModelAgent`` may import it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pydantic_ai
from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings

from goclaw_py.agents.models.connection import ModelConnection
from goclaw_py.agents.models.providers import ModelAccess
from goclaw_py.agents.models.run import ModelRun, RunInputs
from goclaw_py.agents.models.toolset import REPEATS
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.model.errors import AgentError
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest

if TYPE_CHECKING:
    from goclaw_py.agents.models.mcp import Servers


# On a terminal the library would print an advertisement at the first run.
pydantic_ai.BANNER_ENABLED = False


_TEXT_OR_NOTHING: Any = str | None
"""Any: a union is no type for type checkers."""


class Engine:
    """Runs requests against one model over one HTTP client. Any number at once."""

    def __init__(
        self, connection: ModelConnection, spec: AgentSpec, servers: Servers | None = None
    ) -> None:
        """Make client and agent. Reads certificates from disk: not in the event loop's thread.

        ``servers`` are somebody else's to close.
        """
        self._spec = spec
        self._secrets = connection.secrets
        self._access = ModelAccess(connection)
        # Without a name the library looks for one in the frames of its callers, at each run.
        self._agent: Agent[None, str | None] = Agent(
            self._access.model,
            name=spec.name,
            # After a call of a tool there may be nothing left to say.
            output_type=_TEXT_OR_NOTHING,
            retries={"tools": REPEATS, "output": 1},
        )
        self._servers = servers

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """See ``ModelAgent.run``."""
        servers = None if self._servers is None else await self._servers.tools()
        asked = RunInputs(
            agent=self._agent,
            window=self._spec.context_window,
            secrets=self._secrets,
            system_prompt=self._spec.system_prompt,
            servers=servers,
            missing=() if servers is None else servers.missing,
        )
        answer = await ModelRun(asked, request, emit).answer()
        if isinstance(answer, AgentError):
            raise answer
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._access.close()


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
