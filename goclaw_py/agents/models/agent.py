"""The model agent as other modules see it, without heavy imports; ``engine`` does the work."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from functools import partial

from goclaw_py.agents.models.catalog import Provider, read_model
from goclaw_py.agents.models.connection import (
    NO_ENTRY,
    ModelConnection,
    ModelOptions,
    RetryPolicy,
    find_key,
    find_url,
    is_sendable,
    lacks,
)
from goclaw_py.agents.models.engines import Engines, ModelName
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.core.errors import AgentError
from goclaw_py.core.text import truncate
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest

_log = logging.getLogger(__name__)

_SHOWN_CHARS = 60


class ModelAgent:
    """An agent on a language model.

    It can be created, and the gateway can start, without a key; runs then fail with a sentence that
    names the variable to set. The key comes from the spec or the environment. A server with
    ``base_url`` may have no key. Fallback models without a key are left out.

    A run may name another model: ``PROVIDER:NAME``, or ``NAME`` of the same provider. It has the
    same settings; key, address and headers are used only for the same provider, another one's come
    from the environment.
    """

    def __init__(
        self,
        spec: AgentSpec,
        provider: Provider,
        model: str,
        *,
        retry: RetryPolicy | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Take the result of ``build_agent``'s parsing of the settings."""
        self._spec = spec
        self._own = provider, model
        self._retry = retry or RetryPolicy()
        self._environ = environ
        self._engines = Engines(spec, self._own)

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Request the model and call tools until it has answered.

        The reply is exactly what was streamed. A response whose stream ends without a finish reason
        is incomplete and an ``AgentError``, because half a sentence cannot be recognised.
        """
        name = self._named(request.model)
        self._check(name[0])
        async with self._engines.use(name, partial(self._connection, name)) as engine:
            return await engine.run(request, emit)

    async def warm_up(self) -> None:
        """Import the provider's library (1 s), unless its key is missing."""
        provider, _ = self._own
        if lacks(provider, *self._found(provider)) is None:
            self._check(provider)
            async with self._engines.use(self._own, partial(self._connection, self._own)):
                pass

    async def close(self) -> None:
        """Close the HTTP clients. A later run connects again."""
        await self._engines.close()

    def _named(self, text: str) -> ModelName:
        """Return the model that a run names. Raises ``AgentError`` if it is ambiguous."""
        written = text.strip()
        if not written:
            return self._own
        if ":" not in written:
            return self._own[0], written
        if read := read_model(written):
            return read[0], read[1].strip()
        shown = truncate(written, _SHOWN_CHARS)
        raise AgentError(
            f"I know no model “{shown}”. My operator must name one such as openai:gpt-4o.",
            f"agent {self._spec.name}: {shown!r} is not PROVIDER:NAME with a provider that exists",
        )

    def _check(self, provider: Provider) -> None:
        """Raise ``AgentError`` if a provider cannot be used."""
        key, url = self._found(provider)
        if variable := lacks(provider, key, url):
            what = "key" if variable in provider.key_variables else "address"
            raise AgentError(
                f"I have no {what} for {provider.value}. My operator must set {variable} and "
                "restart me.",
                f"agent {self._spec.name}: neither its settings nor {variable} name the {what}",
            )
        if not is_sendable(key):
            cause = f"agent {self._spec.name}: its key has characters that cannot be sent"
            raise AgentError(NO_ENTRY, cause)

    def _found(self, provider: Provider) -> tuple[str, str | None]:
        """Return key and address of a provider."""
        is_own = provider is self._own[0]
        key = find_key(provider, self._spec.api_key if is_own else None, self._environ)
        url = find_url(provider, self._spec.base_url if is_own else None, self._environ)
        return key, url

    def _connection(self, name: ModelName) -> ModelConnection:
        provider, model = name
        key, url = self._found(provider)
        return ModelConnection(
            provider=provider,
            model=model,
            key=key,
            base_url=url,
            headers=dict(self._spec.headers) if provider is self._own[0] else {},
            retry=self._retry,
            options=self._options(),
            fallback=tuple(self._fallback(name)),
        )

    def _fallback(self, name: ModelName) -> Iterator[ModelConnection]:
        for text in self._spec.fallback:
            read = read_model(text)
            assert read is not None, "build_agent has checked it"
            provider, model = read
            # Of the agent's own provider there may be two: its settings' and the environment's.
            if read == name and provider is not self._own[0]:
                continue
            key = find_key(provider, None, self._environ)
            url = find_url(provider, None, self._environ)
            if variable := lacks(provider, key, url):
                facts = {
                    "agent": self._spec.name,
                    "model": text,
                    "reason": f"{variable} is not set",
                }
                _log.warning("fallback_model_skipped", extra=facts)
                continue
            yield ModelConnection(provider, model, key, url, {}, self._retry, self._options())

    def _options(self) -> ModelOptions:
        return ModelOptions(self._spec.temperature, self._spec.thinking)
