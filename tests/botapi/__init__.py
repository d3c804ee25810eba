"""A strict emulator of the Telegram Bot API, for tests.

It refuses what the real server refuses, with the real server's words, keeps updates until they are
confirmed, and can be told to fail in every way a network fails. Three ways to run it:

* ``async with BotApi() as api`` — in the test's own event loop;
* ``with in_thread() as control`` — in a thread, for tests that are not asynchronous;
* ``python -m tests.botapi --port 0`` — as a process of its own; it prints its URL as JSON.

The last two are driven over HTTP through ``Control``, which has the methods of ``BotApi``.
"""

from tests.botapi.control import Control, in_thread
from tests.botapi.faults import Fault, FaultKind
from tests.botapi.server import BotApi, Call

__all__ = ["BotApi", "Call", "Control", "Fault", "FaultKind", "in_thread"]
