"""Agents on language models of any provider (SPEC AGENT-2a).

The only package that imports ``pydantic_ai`` and the providers' libraries, and only when an agent
is warmed up or first run: importing this package is cheap.
"""

from goclaw_py.agents.models.agent import ModelAgent
from goclaw_py.agents.models.catalog import (
    ModelPrice,
    Provider,
    is_priced,
    price_of,
    read_model,
    similar_model,
    unlisted,
)
from goclaw_py.agents.models.connection import (
    ModelConnection,
    ModelOptions,
    RetryPolicy,
    find_key,
    find_url,
    is_sendable,
    lacks,
    unusable,
)

__all__ = [
    "ModelAgent",
    "ModelConnection",
    "ModelOptions",
    "ModelPrice",
    "Provider",
    "RetryPolicy",
    "find_key",
    "find_url",
    "is_priced",
    "is_sendable",
    "lacks",
    "price_of",
    "read_model",
    "similar_model",
    "unlisted",
    "unusable",
]
