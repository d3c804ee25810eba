"""Model servers on this machine, which ``goclaw init`` offers with their models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import httpx
import orjson

_LIMIT_S: Final = 0.7
"""How long a server has to answer: it is on this machine, and a person waits."""

_MOST_BYTES: Final = 1_000_000
_MOST_MODELS: Final = 12
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A program that serves models with OpenAI's protocol at a port of its own."""

    name: str
    provider: str
    port: int

    @property
    def base_url(self) -> str:
        """Return the address that settings have."""
        return f"http://127.0.0.1:{self.port}/v1"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model of such a server."""

    server: LocalServer
    name: str

    @property
    def setting(self) -> str:
        """Return the value of ``model``."""
        return f"{self.server.provider}:{self.name}"


SERVERS: Final = (
    LocalServer("Ollama", "ollama", 11434),
    LocalServer("LM Studio", "openai", 1234),
    LocalServer("llama.cpp", "openai", 8080),
    LocalServer("vLLM", "openai", 8000),
)
"""The servers at their default ports."""


async def find_local_models(servers: Sequence[LocalServer] = SERVERS) -> list[LocalModel]:
    """Ask all servers at once for their models. What does not answer in time has none."""
    # Proxies and certificates are not for this machine.
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=_LIMIT_S) as client:  # noqa: S501
        found = await asyncio.gather(*(_models(client, server) for server in servers))
    return [model for models in found for model in models]


async def _models(client: httpx.AsyncClient, server: LocalServer) -> list[LocalModel]:
    try:
        async with (
            asyncio.timeout(_LIMIT_S),
            client.stream("GET", f"{server.base_url}/models") as response,
        ):
            data = b""
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _MOST_BYTES:
                    return []
        listed = orjson.loads(data)["data"] if response.is_success else []
        names = [one["id"] for one in listed]
    except (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError):
        return []  # another program at this port
    good = [name for name in names if isinstance(name, str) and _is_name(name)]
    return [LocalModel(server, name) for name in good[:_MOST_MODELS]]


def _is_name(text: str) -> bool:
    return text.isprintable() and text == text.strip() and 0 < len(text) <= _LONGEST_NAME
