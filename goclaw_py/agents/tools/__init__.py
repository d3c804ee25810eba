"""The tools of agents, and their permissions (SPEC AGENT-6)."""

from goclaw_py.agents.tools.agents import Delegate
from goclaw_py.agents.tools.chats import SendMessage
from goclaw_py.agents.tools.permissions import SAFE, Permissions
from goclaw_py.agents.tools.registry import TOOLS, Registry

__all__ = ["SAFE", "TOOLS", "Delegate", "Permissions", "Registry", "SendMessage"]
