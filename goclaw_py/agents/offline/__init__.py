"""The agent that needs no key and no network (SPEC AGENT-2d).

A newcomer can try chat, ``/stop``, streaming, tools and subagents with it minutes after cloning. It
understands fixed phrases and says so. A new phrase is a coroutine and a line in ``PHRASES``.
"""

from goclaw_py.agents.offline.loop import PHRASES, OfflineAgent
from goclaw_py.agents.offline.phrases import MAX_COUNT

__all__ = ["MAX_COUNT", "PHRASES", "OfflineAgent"]
