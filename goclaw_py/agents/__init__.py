"""Agent loops that come with the product (SPEC AGENT-2)."""

from goclaw_py.agents.build import build_agent, is_model, run_model_problem
from goclaw_py.agents.command import CommandSpec, OutputKind, UsagePaths, program_loop
from goclaw_py.agents.spec import AgentSpec, McpServer, Thinking

__all__ = [
    "AgentSpec",
    "CommandSpec",
    "McpServer",
    "OutputKind",
    "Thinking",
    "UsagePaths",
    "build_agent",
    "is_model",
    "program_loop",
    "run_model_problem",
]
