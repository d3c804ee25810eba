"""Programs as agents (SPEC AGENT-2b): ``model = "command"``."""

from __future__ import annotations

from goclaw_py.agents.command.loop import CommandAgent
from goclaw_py.agents.command.once import program_loop
from goclaw_py.agents.command.spec import CommandSpec, OutputKind, UsagePaths

__all__ = ["CommandAgent", "CommandSpec", "OutputKind", "UsagePaths", "program_loop"]
