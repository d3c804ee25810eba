"""What is counted between two moments at which nothing is under way."""

from __future__ import annotations

import contextvars
import gc
import logging
import selectors
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType

import goclaw_py
from tests.botapi import BotApi
from tests.ledger.loop import SteadyLoop
from tests.ledger.wire import TRANSACTIONS, Server

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = Path(goclaw_py.__file__).resolve().parents[1]
"""That of another checkout, if it is measured with this one's ledger."""
OURS = (f"{PRODUCT}/goclaw_py/", f"{PRODUCT}/channels/")
_UNCOUNTED = (
    f"{ROOT}/tests/",
    f"{Path(selectors.__file__).parent}/asyncio/",
    selectors.__file__,
    "<frozen",
)
"""Files whose functions do not count: the measurement, and the loop, which is uvloop elsewhere."""

beside: contextvars.ContextVar[bool] = contextvars.ContextVar("beside", default=False)
"""Set for what is not the gateway: the emulator, and what lets people write."""

_TABLES = """
select
    relname, n_tup_ins, n_tup_upd, n_tup_upd - n_tup_hot_upd, n_tup_del, seq_tup_read,
    coalesce(
        (select sum(idx_tup_read) from pg_stat_user_indexes as i where i.relid = t.relid), 0
    )
from pg_stat_user_tables as t where schemaname = 'public'
"""
_COLUMNS = (
    "rows inserted",
    "rows updated",
    "updates that are not HOT",
    "rows deleted",
    "rows read in sequence",
    "index entries read",
)
_WAL = "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
_BARRIER = "ledger_barrier"
_log = logging.getLogger("ledger")


class Counters:
    """Counts from ``begin`` to ``end``."""

    def __init__(self, loop: SteadyLoop, api: BotApi, state: Path, log: Path) -> None:
        self._loop = loop
        self._api = api
        self._log = log
        self._server = loop.network.watch = Server(state)
        self._codes: dict[CodeType, int] = {}
        self._blocks = self._last_blocks = 0
        self._before: Counter[str] = Counter()
        self._barriers = 0

    def begin(self) -> None:
        """Count from now on."""
        self._before = self._look()
        gc.collect()
        gc.disable()
        self._codes.clear()
        self._blocks, self._last_blocks = 0, sys.getallocatedblocks()
        self._loop.on_turn = self._count_blocks
        sys.setprofile(self._on_event)

    def end(self) -> Counter[str]:
        """Stop; what was counted."""
        sys.setprofile(None)
        self._loop.on_turn = None
        calls, blocks = _calls(self._codes), self._blocks
        found = self._look()
        found.subtract(self._before)
        found.update(calls)
        found["allocated blocks"] = blocks
        gc.enable()
        return found

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and not beside.get():
            code = frame.f_code
            self._codes[code] = self._codes.get(code, 0) + 1

    def _count_blocks(self) -> None:
        now = sys.getallocatedblocks()
        self._blocks += max(0, now - self._last_blocks)
        self._last_blocks = now

    def _look(self) -> Counter[str]:
        found: Counter[str] = Counter()
        statements = Counter(self._loop.network.statements)
        found["transactions"] = statements.pop(TRANSACTIONS, 0)
        found["statements"] = statements.total()
        found.update({f"statement {name}": count for name, count in statements.items()})
        self._loop.network.flush_counters()
        for name, *values in self._server.rows(_TABLES):
            for column, value in zip(_COLUMNS, values, strict=True):
                found[column] += int(value)
                found[f"{column}, {name}"] = int(value)
        found["WAL bytes"] = int(self._server.rows(_WAL)[0][0])
        for method, count in self._api.counts().items():
            found["Bot API calls"] += count
            found[f"Bot API call {method}"] = count
        lines = self._lines()
        found["log lines"] = len(lines)
        found["log bytes"] = sum(map(len, lines))
        return found

    def _lines(self) -> list[bytes]:
        """Return the log so far. A thread may write it, in order: so wait for the last line."""
        self._barriers += 1
        mark = f"{_BARRIER}_{self._barriers}"
        _log.warning(mark)
        end = time.monotonic() + 60
        while not any(mark.encode() in line for line in self._written()[-5:]):
            if time.monotonic() > end:
                raise RuntimeError("a log line was not written within a minute")
            time.sleep(0.001)
        return [line for line in self._written() if _BARRIER.encode() not in line]

    def _written(self) -> list[bytes]:
        return self._log.read_bytes().splitlines(keepends=True) if self._log.exists() else []


def _calls(codes: Mapping[CodeType, int]) -> Counter[str]:
    """Count calls of Python functions; each time that a coroutine goes on counts, too."""
    found: Counter[str] = Counter()
    for code, count in codes.items():
        file = code.co_filename
        if file.startswith(OURS):
            found["function calls in goclaw_py and channels"] += count
        if not file.startswith(_UNCOUNTED):
            found["function calls"] += count
    return found
