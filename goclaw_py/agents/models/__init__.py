"""Agents on models of OpenAI, Anthropic and compatible servers (SPEC AGENT-2a).

The only package that imports ``pydantic_ai`` and the providers' libraries, and only when an agent
is warmed up or runs for the first time: importing this package costs nothing.
"""

from goclaw_py.agents.models.agent import ModelAgent
from goclaw_py.agents.models.connection import Connection, Provider, Retry

__all__ = ["Connection", "ModelAgent", "Provider", "Retry"]
