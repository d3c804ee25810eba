"""Creates pydantic-ai models from connections. Heavy imports.

Each provider's library costs 25 MB and 0.6 s, so only those in use are imported. Our HTTP transport
retries where a provider accepts our client; its library's own retries, which would multiply these,
are disabled.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import httpx2
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.profiles import DEFAULT_THINKING_TAGS
from pydantic_ai.providers import Provider as Source
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings, ThinkingLevel

from goclaw_py.agents.models.catalog import Provider
from goclaw_py.agents.models.connection import ModelConnection
from goclaw_py.agents.models.measure import readable
from goclaw_py.agents.models.scrub import scrub
from goclaw_py.agents.models.transport import retrying_client, timeout
from goclaw_py.agents.spec import Thinking
from goclaw_py.core.errors import AgentError

C = TypeVar("C")

_log = logging.getLogger(__name__)

for _name in ("openai", "anthropic", "groq", "mistralai", "google_genai", "botocore", "urllib3"):
    # At DEBUG they print requests with all headers, and keys are among them (SPEC SEC-2).
    logging.getLogger(_name).setLevel(logging.WARNING)

_NO_KEY = "none"
"""Sent to servers without a key, because the libraries require one."""

_THINKING: Mapping[Thinking, ThinkingLevel] = {
    Thinking.OFF: False,
    Thinking.LOW: "low",
    Thinking.MEDIUM: "medium",
    Thinking.HIGH: "high",
}

_EITHER = frozenset(
    {
        Provider.ANTHROPIC,
        Provider.BEDROCK,
        Provider.GATEWAY_ANTHROPIC,
        Provider.GATEWAY_BEDROCK,
    }
)
"""Providers of Claude, which refuses a temperature while it thinks."""

_GATEWAY = "gateway/"
_KEY_ARGUMENTS = ("api_key", "token")
_URL_ARGUMENTS = ("base_url", "azure_endpoint", "api_base")


class ModelAccess:
    """A model, its fallbacks, and the HTTP clients of all."""

    def __init__(self, connection: ModelConnection) -> None:
        """Create them. Reads certificates from disk: call it in a thread.

        Raises ``AgentError`` if a library or a setting of the first model is missing. Fallbacks
        that cannot be created are left out.
        """
        self._clients: list[httpx2.AsyncClient] = []
        self.model = self._make(connection)
        others = [other for each in connection.fallback if (other := self._spare(each))]
        if others:
            self.model = Fallback(self.model, *others)

    async def close(self) -> None:
        """Close the connections."""
        # Entering and leaving is how a provider closes a client that it made itself.
        async with self.model:
            pass
        for client in self._clients:
            await client.aclose()

    def _make(self, connection: ModelConnection) -> Model:
        http = retrying_client(connection.retry)
        self._clients.append(http)
        model = _model(connection, http)
        begin, end = model.profile.get("thinking_tags", DEFAULT_THINKING_TAGS)
        model.profile["thinking_tags"] = (_UnmatchedTag(begin), _UnmatchedTag(end))
        if connection.options.thinks and not _can_think(model):
            facts = {"model": connection.model, "setting": "thinking"}
            _log.warning("model_setting_ignored", extra=facts)
        return model

    def _spare(self, connection: ModelConnection) -> Model | None:
        try:
            return self._make(connection)
        except AgentError as error:
            facts = {"model": connection.model, "reason": str(error)}
            _log.warning("fallback_model_skipped", extra=facts)
            return None


class _UnmatchedTag(str):
    """A tag of thoughts that the library sends, and does not recognise in a stream.

    It would recognise only a tag that is a piece of its own, and lose an answer whose closing tag
    is none. We separate thoughts once the whole text is there.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return super().__hash__()


def settings(connection: ModelConnection) -> ModelSettings:
    """Return the settings of each request. A model ignores those that it does not know."""
    wanted = ModelSettings()
    options = connection.options
    if options.temperature is not None and not (options.thinks and connection.provider in _EITHER):
        wanted["temperature"] = options.temperature
    if options.thinking is not None:
        wanted["thinking"] = _THINKING[options.thinking]
    if connection.headers:
        wanted["extra_headers"] = dict(connection.headers)
    return wanted


def _disable_retries(client: object, wanted: ModelSettings) -> None:
    """Disable a library's own retries.

    With the setting some libraries copy their client for each request, and each copy asks a thread
    for the name of the platform.
    """
    if hasattr(client, "max_retries"):
        client.max_retries = 0
    else:
        wanted["max_retries"] = 0


def _can_think(model: Model) -> bool:
    profile = model.profile
    return bool(profile.get("supports_thinking") or profile.get("thinking_always_enabled"))


def _model(connection: ModelConnection, http: httpx2.AsyncClient) -> Model:
    provider = connection.provider
    if not provider.is_installed:
        raise AgentError(
            f"I cannot talk to {provider.value} yet: my operator must install its library.",
            f"the library of {provider.value} is not installed: {provider.install}",
        )
    try:
        match provider:
            case Provider.OPENAI | Provider.OPENAI_CHAT:
                return _openai(connection, http)
            case Provider.ANTHROPIC:
                return _anthropic(connection, http)
            case _:
                return _other(connection, http)
    except (UserError, httpx2.InvalidURL) as error:
        cause = scrub(f"{provider.value}: {error}", connection.secrets)
        friendly = (
            "Something is wrong with the settings of my model. My operator can find the cause."
        )
        raise AgentError(friendly, cause) from None


def _checking(library: type[C]) -> type[C]:
    """Return a library's class of clients that check what they receive, before it is read."""

    class Checking(library):  # type: ignore[valid-type, misc]
        def _process_response_data(self, *, data: object, **more: Any) -> Any:
            return super()._process_response_data(data=readable(data), **more)

    return Checking


def _openai(connection: ModelConnection, http: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI  # noqa: PLC0415 - see above
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    client = _checking(AsyncOpenAI)(
        api_key=connection.key or _NO_KEY,
        base_url=connection.base_url,
        timeout=timeout(connection.retry),
        max_retries=0,
        http_client=http,
    )
    # Other servers are not assumed to have what only OpenAI's own has, nor to cost the same.
    source = (
        OpenAIProvider(openai_client=client)
        if connection.base_url is None
        else OpenAICompatibleProvider("openai-compatible", openai_client=client)
    )
    # Else a stream that just ends is taken for a complete answer.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if connection.base_url is not None and connection.options.thinking is not None:
        # Nothing is known of this server's models, and the operator should know what it can do.
        profile["supports_thinking"] = True
    return OpenAIChatModel(
        connection.model, provider=source, profile=profile, settings=settings(connection)
    )


def _anthropic(connection: ModelConnection, http: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic  # noqa: PLC0415 - see above
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    client = _checking(AsyncAnthropic)(
        api_key=connection.key or _NO_KEY,
        base_url=connection.base_url,
        timeout=timeout(connection.retry),
        max_retries=0,
        http_client=http,
    )
    return AnthropicModel(
        connection.model,
        provider=AnthropicProvider(anthropic_client=client),
        settings=settings(connection),
    )


def _other(connection: ModelConnection, http: httpx2.AsyncClient) -> Model:
    """Create the model that pydantic-ai has for the provider's name."""
    source = _source(connection, http)
    inferred = infer_model(f"{connection.provider.value}:{connection.model}", lambda _: source)
    wanted = settings(connection)
    if connection.provider.takes_our_client:
        _disable_retries(source.client, wanted)
        if hasattr(source.client, "_process_response_data"):
            # pydantic-ai makes it, and only some of its providers accept one that is made already.
            source.client.__class__ = _checking(type(source.client))
    if "extra_headers" in inferred.unsupported_settings:
        http.headers.update(wanted.pop("extra_headers", {}))
    # Only the class of a model takes settings that are its own, and `infer_model` hands none on.
    make = cast("Callable[..., Model]", type(inferred))
    return make(connection.model, provider=source, settings=wanted)


def _source(connection: ModelConnection, http: httpx2.AsyncClient) -> Source[Any]:
    """Create the provider with key, address and HTTP client, as far as it accepts them."""
    make = _maker(connection.provider)
    takes = inspect.signature(make).parameters
    given: dict[str, object] = {}
    if key := connection.key or (_NO_KEY if connection.base_url else ""):
        given |= {name: key for name in _KEY_ARGUMENTS if name in takes}
    if connection.provider.takes_our_client:
        given["http_client"] = http
    url_argument = next((name for name in _URL_ARGUMENTS if name in takes), None)
    if connection.base_url and url_argument:
        given[url_argument] = connection.base_url
    source = make(**given)
    if connection.base_url and not url_argument:
        # All of these are OpenAI's library with an address that is written into pydantic-ai.
        source.client.base_url = connection.base_url
    return source


def _maker(provider: Provider) -> Callable[..., Source[Any]]:
    if not provider.value.startswith(_GATEWAY):
        return infer_provider_class(provider.value)
    from pydantic_ai.providers.gateway import gateway_provider  # noqa: PLC0415 - rarely used

    return partial(gateway_provider, provider.value.removeprefix(_GATEWAY))


class Fallback(FallbackModel):
    """Asks the next model if one fails before its first output.

    The library stores the errors of earlier models with each response. They are in the log; in the
    history they could reveal parts of keys (SPEC SEC-2).
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
        """Request a complete response."""
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
        """Request a streamed response."""
        asked = super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        )
        async with asked as stream:
            stream.failed_attempts = None
            yield stream


def _falls_back(error: Exception) -> bool:
    """Return whether to ask another model, and log the failure for the operator."""
    if not isinstance(error, ModelAPIError):
        return False
    facts = {"model": error.model_name, "error": type(error).__name__}
    _log.warning("model_failed", extra=facts)
    return True
