"""Which models have a known price (SPEC AGENT-5). Imports ``genai_prices`` when it is asked."""

from __future__ import annotations

from goclaw_py.agents.models.catalog import Provider

_GATEWAY = "gateway/"
_ALIASES = {"openai-chat": "openai", "openai-responses": "openai", "google-cloud": "google"}
"""Under which name the prices of a provider are listed, where that is not its own."""


def is_priced(provider: Provider, model: str, base_url: str | None) -> bool:
    """Whether a budget of money can hold for a model.

    What a server of one's own costs nobody knows, whatever its models are called.
    """
    if base_url:
        return False
    from genai_prices import Usage, calc_price  # noqa: PLC0415 - 0.2 s

    name = provider.value.removeprefix(_GATEWAY)
    try:
        calc_price(Usage(input_tokens=1), model, provider_id=_ALIASES.get(name, name))
    except LookupError:
        return False
    return True
