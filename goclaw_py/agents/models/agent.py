"""The model agent as the rest of the program sees it. Light: the engine behind it comes later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from goclaw_py.agents.models.connection import Connection, Provider, Retry
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import AgentError
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest

if TYPE_CHECKING:
    from goclaw_py.agents.models.engine import Engine


class ModelAgent:
    """An agent on a language model.

    It can be made, and the gateway can start, without a key; runs then fail with a sentence that
    names the variable to set. A key is looked for in the spec, then in the environment. A server
    of one's own (``base_url``) is asked without a key if there is none.
    """

    def __init__(
        self,
        spec: AgentSpec,
        provider: Provider,
        model: str,
        *,
        tools: Sequence[Callable[..., object]] = (),
        retry: Retry | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Take what ``build_agent`` has read from the settings.

        ``tools`` are functions whose signature and docstring tell the model how to call them.
        """
        self._spec = spec
        self._provider = provider
        self._model = model
        self._tools = tuple(tools)
        self._retry = retry or Retry()
        self._environ = environ
        self._connecting: asyncio.Task[Engine] | None = None

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Ask the model, let it call tools, until it has answered.

        The reply is what was streamed. An answer whose stream ends without a finish reason was cut
        off and is an ``AgentError``, because nobody can tell a half sentence from a whole one.
        """
        return await (await self._engine()).run(request, emit)

    async def warm_up(self) -> None:
        """Import the provider's library in a thread (1 to 2 s), unless there is no key for it."""
        if self._credential() is not None:
            await self._engine()

    async def close(self) -> None:
        """Close the HTTP client. A run after it connects anew."""
        task, self._connecting = self._connecting, None
        if task is None:
            return
        # A thread cannot be stopped in mid-import; what it makes still has to be closed.
        await asyncio.wait([task])
        if not _failed(task):
            await task.result().close()

    async def _engine(self) -> Engine:
        key = self._credential()
        if key is None:
            variable = self._provider.key_variable
            raise AgentError(
                f"I have no key for {self._provider.value}: set {variable} in the gateway's "
                "environment and restart it.",
                f"agent {self._spec.name}: neither api_key nor {variable} is set",
            )
        # One task for all who wait: a cancelled run must not cancel the import for the others.
        if self._connecting is None or _failed(self._connecting):
            self._connecting = asyncio.create_task(asyncio.to_thread(self._connect, key))
        return await asyncio.shield(self._connecting)

    def _connect(self, key: str) -> Engine:
        from goclaw_py.agents.models.engine import Engine  # noqa: PLC0415 - costs 1 s

        connection = Connection(
            provider=self._provider,
            model=self._model,
            key=key,
            base_url=self._base_url(),
            headers=dict(self._spec.headers),
            retry=self._retry,
        )
        return Engine(connection, system_prompt=self._spec.system_prompt, tools=self._tools)

    def _base_url(self) -> str | None:
        return self._spec.base_url or self._environ.get(self._provider.url_variable) or None

    def _credential(self) -> str | None:
        """The key; empty for a server of one's own without one; None where it is missing."""
        given = self._spec.api_key or self._environ.get(self._provider.key_variable) or ""
        # A line end from a file would make the header invalid, and the error would show the key.
        key = given.strip()
        return key if key or self._base_url() else None


def _failed(task: asyncio.Task[Engine]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
