"""The model agent as the rest of the program sees it. Light: the engine behind it comes later."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from goclaw_py.agents.models.catalog import Provider, read_model
from goclaw_py.agents.models.connection import (
    NO_ENTRY,
    Connection,
    Options,
    Retry,
    find_key,
    find_url,
    is_sendable,
    lacks,
)
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import AgentError
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest

if TYPE_CHECKING:
    from goclaw_py.agents.models.engine import Engine

_log = logging.getLogger(__name__)


class ModelAgent:
    """An agent on a language model.

    It can be made, and the gateway can start, without a key; runs then fail with a sentence that
    names the variable to set. A key is looked for in the spec, then in the environment. A server
    of one's own (``base_url``) is asked without a key if there is none. Fallback models without a
    key are left out.
    """

    def __init__(
        self,
        spec: AgentSpec,
        provider: Provider,
        model: str,
        *,
        retry: Retry | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Take what ``build_agent`` has read from the settings."""
        self._spec = spec
        self._provider = provider
        self._model = model
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
        if self._lacks() is None:
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
        if variable := self._lacks():
            what = "key" if variable in self._provider.key_variables else "address"
            raise AgentError(
                f"I have no {what} for {self._provider.value}: set {variable} in the gateway's "
                "environment and restart it.",
                f"agent {self._spec.name}: neither its settings nor {variable} name the {what}",
            )
        if not is_sendable(self._found()[0]):
            cause = f"agent {self._spec.name}: its key has characters that cannot be sent"
            raise AgentError(NO_ENTRY, cause)
        # One task for all who wait: a cancelled run must not cancel the import for the others.
        if self._connecting is None or _failed(self._connecting):
            self._connecting = asyncio.create_task(asyncio.to_thread(self._connect))
        return await asyncio.shield(self._connecting)

    def _connect(self) -> Engine:
        from goclaw_py.agents.models.engine import Engine  # noqa: PLC0415 - costs 1 s

        return Engine(self._connection(), self._spec)

    def _lacks(self) -> str | None:
        key, url = self._found()
        return lacks(self._provider, key, url)

    def _found(self) -> tuple[str, str | None]:
        """Key and address of the first model."""
        key = find_key(self._provider, self._spec.api_key, self._environ)
        return key, find_url(self._provider, self._spec.base_url, self._environ)

    def _connection(self) -> Connection:
        key, url = self._found()
        return Connection(
            provider=self._provider,
            model=self._model,
            key=key,
            base_url=url,
            headers=dict(self._spec.headers),
            retry=self._retry,
            options=self._options(),
            fallback=tuple(self._fallback()),
        )

    def _fallback(self) -> Iterator[Connection]:
        for text in self._spec.fallback:
            read = read_model(text)
            assert read is not None, "build_agent has checked it"
            provider, model = read
            key = find_key(provider, None, self._environ)
            url = find_url(provider, None, self._environ)
            if variable := lacks(provider, key, url):
                facts = {"agent": self._spec.name, "model": text, "variable": variable}
                _log.warning("a fallback model is left out: no key", extra=facts)
                continue
            yield Connection(provider, model, key, url, {}, self._retry, self._options())

    def _options(self) -> Options:
        return Options(self._spec.temperature, self._spec.thinking)


def _failed(task: asyncio.Task[Engine]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
