"""Providers of models: their requirements, and whether prices are known (SPEC AGENT-2a).

Light: it imports only ``genai_prices``, when a price is needed.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from importlib.util import find_spec

_AWS = ("AWS_BEARER_TOKEN_BEDROCK",)
_GOOGLE = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_GATEWAY = ("PYDANTIC_AI_GATEWAY_API_KEY", "PAIG_API_KEY")
_GATEWAY_URL = "PYDANTIC_AI_GATEWAY_BASE_URL"


class Provider(StrEnum):
    """A provider of models; the prefix of the ``model`` setting.

    These are pydantic-ai's names, except providers without text models, one whose key cannot be in
    settings, and one that has closed. Other servers with OpenAI's protocol are used as ``openai``
    with a ``base_url``.
    """

    ALIBABA = "alibaba"
    ANTHROPIC = "anthropic"
    AZURE = "azure"
    AZURE_RESPONSES = "azure-responses"
    BEDROCK = "bedrock"
    BEDROCK_MANTLE = "bedrock-mantle"
    CEREBRAS = "cerebras"
    COHERE = "cohere"
    CRUSOE = "crusoe"
    DEEPSEEK = "deepseek"
    FIREWORKS = "fireworks"
    GATEWAY_ANTHROPIC = "gateway/anthropic"
    GATEWAY_BEDROCK = "gateway/bedrock"
    GATEWAY_GOOGLE = "gateway/google"
    GATEWAY_GOOGLE_CLOUD = "gateway/google-cloud"
    GATEWAY_GROQ = "gateway/groq"
    GATEWAY_OPENAI = "gateway/openai"
    GATEWAY_OPENAI_CHAT = "gateway/openai-chat"
    GATEWAY_OPENAI_RESPONSES = "gateway/openai-responses"
    GITHUB_COPILOT = "github-copilot"
    GOOGLE = "google"
    GOOGLE_CLOUD = "google-cloud"
    GROQ = "groq"
    HEROKU = "heroku"
    HUGGINGFACE = "huggingface"
    LITELLM = "litellm"
    META = "meta"
    MISTRAL = "mistral"
    MOONSHOTAI = "moonshotai"
    NEBIUS = "nebius"
    OLLAMA = "ollama"
    OPENAI = "openai"
    OPENAI_CHAT = "openai-chat"
    OPENAI_CODEX = "openai-codex"
    OPENAI_RESPONSES = "openai-responses"
    OPENROUTER = "openrouter"
    OVHCLOUD = "ovhcloud"
    SAMBANOVA = "sambanova"
    SNOWFLAKE = "snowflake"
    TOGETHER = "together"
    VERCEL = "vercel"
    VLLM = "vllm"
    XAI = "xai"
    ZAI = "zai"

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables that may contain the key; messages name the first."""
        return _facts(self).keys or (f"{_variable(self)}_API_KEY",)

    @property
    def key_variable(self) -> str:
        """Return the environment variable of the key."""
        return self.key_variables[0]

    @property
    def needs_key(self) -> bool:
        """Return whether a key is required: not if it is optional or comes from elsewhere."""
        return _facts(self).needs_key

    @property
    def url_variable(self) -> str:
        """Return the environment variable of another server's address; "": none."""
        return _facts(self).url

    @property
    def needs_url(self) -> bool:
        """Return whether an address is required, because there is no default server."""
        return _facts(self).needs_url

    @property
    def takes_url(self) -> bool:
        """Return whether the settings may name another server."""
        return _facts(self).takes_url

    @property
    def takes_headers(self) -> bool:
        """Return whether the settings may add HTTP headers."""
        return _facts(self).takes_headers

    @property
    def takes_our_client(self) -> bool:
        """Return whether it uses our HTTP client; otherwise its library may retry by itself."""
        return _facts(self).takes_our_client

    @property
    def install(self) -> str:
        """Return the command that installs its library."""
        return f"pip install 'pydantic-ai-slim[{_facts(self).extra}]'"

    @property
    def is_installed(self) -> bool:
        """Return whether its library is installed, without importing it."""
        try:
            return find_spec(_facts(self).library) is not None
        except ModuleNotFoundError:
            return False


@dataclass(frozen=True, slots=True)
class _Facts:
    """Differences from most providers, which have OpenAI's protocol and library."""

    keys: tuple[str, ...] = ()
    needs_key: bool = True
    url: str = ""
    needs_url: bool = False
    takes_url: bool = True
    takes_headers: bool = True
    takes_our_client: bool = True
    library: str = "openai"
    extra: str = "openai"


_USUAL = _Facts()

_OTHERS = {
    Provider.ALIBABA: _Facts(("ALIBABA_API_KEY", "DASHSCOPE_API_KEY")),
    Provider.ANTHROPIC: _Facts(url="ANTHROPIC_BASE_URL", library="anthropic", extra="anthropic"),
    Provider.AZURE: _Facts(("AZURE_OPENAI_API_KEY",), url="AZURE_OPENAI_ENDPOINT", needs_url=True),
    Provider.AZURE_RESPONSES: _Facts(
        ("AZURE_OPENAI_API_KEY",), url="AZURE_OPENAI_ENDPOINT", needs_url=True
    ),
    # Credentials on AWS or Google Cloud need not be keys.
    Provider.BEDROCK: _Facts(
        _AWS, needs_key=False, takes_our_client=False, library="boto3", extra="bedrock"
    ),
    Provider.BEDROCK_MANTLE: _Facts(
        _AWS, needs_key=False, library="botocore", extra="bedrock-mantle"
    ),
    Provider.COHERE: _Facts(
        ("CO_API_KEY",),
        takes_url=False,
        takes_headers=False,
        takes_our_client=False,
        library="cohere",
        extra="cohere",
    ),
    Provider.GATEWAY_ANTHROPIC: _Facts(
        _GATEWAY, url=_GATEWAY_URL, library="anthropic", extra="anthropic"
    ),
    Provider.GATEWAY_BEDROCK: _Facts(
        _GATEWAY, url=_GATEWAY_URL, takes_our_client=False, library="boto3", extra="bedrock"
    ),
    Provider.GATEWAY_GOOGLE: _Facts(
        _GATEWAY, url=_GATEWAY_URL, library="google.genai", extra="google"
    ),
    Provider.GATEWAY_GOOGLE_CLOUD: _Facts(
        _GATEWAY, url=_GATEWAY_URL, library="google.genai", extra="google"
    ),
    Provider.GATEWAY_GROQ: _Facts(
        _GATEWAY, url=_GATEWAY_URL, takes_our_client=False, library="groq", extra="groq"
    ),
    Provider.GATEWAY_OPENAI: _Facts(_GATEWAY, url=_GATEWAY_URL),
    Provider.GATEWAY_OPENAI_CHAT: _Facts(_GATEWAY, url=_GATEWAY_URL),
    Provider.GATEWAY_OPENAI_RESPONSES: _Facts(_GATEWAY, url=_GATEWAY_URL),
    Provider.GITHUB_COPILOT: _Facts(
        ("GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"),
        url="GITHUB_COPILOT_BASE_URL",
    ),
    Provider.GOOGLE: _Facts(_GOOGLE, library="google.genai", extra="google"),
    Provider.GOOGLE_CLOUD: _Facts(_GOOGLE, needs_key=False, library="google.genai", extra="google"),
    Provider.GROQ: _Facts(
        url="GROQ_BASE_URL", takes_our_client=False, library="groq", extra="groq"
    ),
    Provider.HEROKU: _Facts(("HEROKU_INFERENCE_KEY",), url="HEROKU_INFERENCE_URL"),
    Provider.HUGGINGFACE: _Facts(
        ("HF_TOKEN",),
        takes_headers=False,
        takes_our_client=False,
        library="huggingface_hub",
        extra="huggingface",
    ),
    Provider.LITELLM: _Facts(needs_key=False, url="LITELLM_BASE_URL", needs_url=True),
    Provider.MISTRAL: _Facts(library="mistralai", extra="mistral"),
    Provider.MOONSHOTAI: _Facts(url="MOONSHOTAI_BASE_URL"),
    Provider.OLLAMA: _Facts(needs_key=False, url="OLLAMA_BASE_URL", needs_url=True),
    Provider.OPENAI: _Facts(url="OPENAI_BASE_URL"),
    Provider.OPENAI_CHAT: _Facts(("OPENAI_API_KEY",), url="OPENAI_BASE_URL"),
    # It reads what the command `codex` stores at a login.
    Provider.OPENAI_CODEX: _Facts(needs_key=False, takes_url=False),
    Provider.OPENAI_RESPONSES: _Facts(("OPENAI_API_KEY",), url="OPENAI_BASE_URL"),
    Provider.SAMBANOVA: _Facts(url="SAMBANOVA_BASE_URL"),
    Provider.SNOWFLAKE: _Facts(("SNOWFLAKE_TOKEN",)),
    Provider.VERCEL: _Facts(("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN")),
    Provider.VLLM: _Facts(needs_key=False, url="VLLM_BASE_URL", needs_url=True),
    # Its library speaks another protocol than HTTP/1.1 to one fixed address.
    Provider.XAI: _Facts(
        takes_url=False, takes_headers=False, takes_our_client=False, library="xai_sdk", extra="xai"
    ),
}


def read_model(text: str) -> tuple[Provider, str] | None:
    """Parse ``PROVIDER:NAME``; None if it is anything else, or the provider is unknown."""
    prefix, _, name = text.strip().partition(":")
    return (Provider(prefix), name) if name.strip() and prefix in set(Provider) else None


_MAKERS = {
    "gpt": Provider.OPENAI,
    "chatgpt": Provider.OPENAI,
    "o3": Provider.OPENAI,
    "o4": Provider.OPENAI,
    "claude": Provider.ANTHROPIC,
    "gemini": Provider.GOOGLE,
    "mistral": Provider.MISTRAL,
    "command": Provider.COHERE,
    "deepseek": Provider.DEEPSEEK,
    "grok": Provider.XAI,
    "llama": Provider.OLLAMA,
    "qwen": Provider.OLLAMA,
    "gemma": Provider.OLLAMA,
}
"""The provider that people mean, by the beginning of a model's name."""


def similar_model(text: str) -> str | None:
    """Return the setting that was probably meant by one that is wrong; None without an idea."""
    prefix, colon, name = text.strip().partition(":")
    lower = prefix.lower()
    if colon and name.strip():
        near = difflib.get_close_matches(lower, list(Provider), n=1)
        return f"{near[0]}:{name.strip()}" if near else None
    maker = next((one for start, one in _MAKERS.items() if lower.startswith(start)), None)
    if maker is not None:
        return f"{maker}:{prefix}"
    return f"{lower}:NAME" if lower in set(Provider) else None


_SIMILAR = 3
"""The most models that are suggested."""


def unlisted(provider: Provider, name: str) -> tuple[str, ...] | None:
    """Return the listed models of a provider that resemble a name; None if the name is listed.

    None also if nothing is known of the provider's models, such as of a local server.
    """
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - 0.2 s

    if price_of(provider, name, None) is not None:
        return None
    key = _price_key(provider)
    models = [
        one.id for maker in get_snapshot().providers if maker.id == key for one in maker.models
    ]
    if not models:
        return None
    with_it = sorted((one for one in models if name.lower() in one), reverse=True)
    return tuple(with_it[:_SIMILAR] or difflib.get_close_matches(name.lower(), models, _SIMILAR))


def _facts(provider: Provider) -> _Facts:
    return _OTHERS.get(provider, _USUAL)


def _variable(provider: Provider) -> str:
    return provider.value.upper().replace("-", "_").replace("/", "_")


_ALIASES = {"openai-chat": "openai", "openai-responses": "openai", "google-cloud": "google"}
"""The names under which prices are listed, where they differ."""


def _price_key(provider: Provider) -> str:
    name = provider.value.removeprefix("gateway/")
    return _ALIASES.get(name, name)


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What a million tokens cost in USD, and how many tokens a request may have, if known."""

    input_usd: Decimal
    output_usd: Decimal
    context_window: int | None


def is_priced(provider: Provider, model: str, base_url: str | None) -> bool:
    """Return whether a cost budget can be enforced for a model."""
    return price_of(provider, model, base_url) is not None


def price_of(provider: Provider, model: str, base_url: str | None) -> ModelPrice | None:
    """Return the price of a model, None if it is not known.

    The cost of a server with ``base_url`` is unknown, whatever its models are called.
    """
    if base_url:
        return None
    from genai_prices import Usage, calc_price  # noqa: PLC0415 - 0.2 s

    # Few tokens: some models cost more per token in long requests.
    used = Usage(input_tokens=1000, output_tokens=1000)
    try:
        found = calc_price(used, model, provider_id=_price_key(provider))
    except LookupError:
        return None
    window = found.model.context_window
    return ModelPrice(found.input_price * 1000, found.output_price * 1000, window)
