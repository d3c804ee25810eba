"""The tools of agents, and their permissions (SPEC AGENT-6)."""

from goclaw_py.tools.agents import Delegate
from goclaw_py.tools.chats import SendMessage
from goclaw_py.tools.permissions import SAFE, Permissions
from goclaw_py.tools.registry import TOOLS, Registry

__all__ = ["SAFE", "TOOLS", "Delegate", "Permissions", "Registry", "SendMessage"]
