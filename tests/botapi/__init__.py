"""A strict emulator of the Telegram Bot API, for tests.

It refuses what the real server refuses, with the real server's words, keeps updates until they are
confirmed, brings them to a webhook, and can be told to fail in every way a network fails. Three
ways to run it:

* ``async with BotApi() as api`` — in the test's own event loop;
* ``with in_thread() as control`` — in a thread, for tests that are not asynchronous;
* ``python -m tests.botapi`` — as a process of its own; it prints its URL as JSON.

The last two are driven over HTTP through ``Control``, which has the methods of ``BotApi``. What
can be done is in ``People`` (users), ``Places`` (groups, topics) and ``Knobs`` (the server).
It knows the methods of the Bot API that our channel calls.
"""

from tests.botapi.control import Control, in_thread
from tests.botapi.faults import Fault, FaultKind
from tests.botapi.files import FileKind, png
from tests.botapi.server import BotApi

__all__ = ["BotApi", "Control", "Fault", "FaultKind", "FileKind", "in_thread", "png"]
