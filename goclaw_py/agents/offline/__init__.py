"""The agent that needs no key and no network (SPEC AGENT-2d).

It lets a newcomer try chat, ``/stop``, streaming, tools and subagents minutes after cloning. It is
not clever and says so. A new phrase is a coroutine and one line in ``PHRASES``.
"""

from goclaw_py.agents.offline.loop import PHRASES, OfflineAgent
from goclaw_py.agents.offline.phrases import MAX_COUNT

__all__ = ["MAX_COUNT", "PHRASES", "OfflineAgent"]
