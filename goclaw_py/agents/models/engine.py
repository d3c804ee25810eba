"""An agent on pydantic-ai. Heavy imports: only ``ModelAgent`` may import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic_ai
from pydantic_ai import Agent, DeferredToolRequests

from goclaw_py.agents.models.connection import ModelConnection
from goclaw_py.agents.models.providers import ModelAccess
from goclaw_py.agents.models.run import ModelRun, RunInputs
from goclaw_py.agents.models.toolset import REPEATS
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import AgentError
from goclaw_py.core.run_events import ToolStarted
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest

if TYPE_CHECKING:
    from goclaw_py.agents.models.mcp import Servers


# On a terminal the library would print an advertisement at the first run.
pydantic_ai.BANNER_ENABLED = False


_OUTPUT: Any = [str | None, DeferredToolRequests]
"""A text, nothing, or calls that wait for a person.

Typed as Any: type checkers do not accept a union as a type argument.
"""


class Engine:
    """Runs requests against one model over one HTTP client, any number at once."""

    def __init__(
        self, connection: ModelConnection, spec: AgentSpec, servers: Servers | None = None
    ) -> None:
        """Create client and agent. Reads certificates from disk: call it in a thread.

        The caller closes ``servers``.
        """
        self._spec = spec
        self._secrets = connection.secrets
        self._access = ModelAccess(connection)
        # Without a name the library looks for one in the frames of its callers, at each run.
        self._agent: Agent[None, str | None] = Agent(
            self._access.model,
            name=spec.name,
            # After a call of a tool there may be nothing left to say.
            output_type=_OUTPUT,
            retries={"tools": REPEATS, "output": 1},
        )
        self._servers = servers

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        servers = None
        if self._servers is not None:
            called = {step.name for step in request.steps if isinstance(step, ToolStarted)}
            servers = await self._servers.tools(called, emit)
        asked = RunInputs(
            agent=self._agent,
            model=self._access.model,
            window=self._spec.context_window,
            secrets=self._secrets,
            system_prompt=self._spec.system_prompt,
            servers=servers,
            missing=() if servers is None else servers.missing,
            approval=self._spec.approval,
        )
        answer = await ModelRun(asked, request, emit).answer()
        if isinstance(answer, AgentError):
            raise answer
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._access.close()
