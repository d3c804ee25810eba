"""Inbox rows that this process has claimed, so that polling does not claim them again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

from goclaw_py.model.ids import SessionKey
from goclaw_py.ports.store import InboxRow
from goclaw_py.runs.turn import Turn


class ClaimedMessages:
    """Rows stay until the database shows that they are done, or until they are released."""

    def __init__(self) -> None:
        self._rows: dict[int, Turn | None] = {}
        """Messages with the turns that they came with."""
        self._being_taken: dict[int, InboxRow] = {}
        self.life = 0
        """Grows when this node was declared dead: what it did before is none of ours."""
        self._given_back: dict[SessionKey, dict[int, InboxRow]] = {}
        """What no look has taken up again; a new dictionary of a session whenever there is more."""
        self._seen: Mapping[SessionKey, Mapping[int, InboxRow]] = {}
        """The same when the look that is under way has begun."""
        self._found: set[int] = set()
        """What that look takes up."""

    def __contains__(self, row_id: int) -> bool:
        return row_id in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def begin(self, row: InboxRow) -> None:
        """It is being taken up."""
        self._rows[row.id] = None
        self._being_taken[row.id] = row

    def end(self, row_id: int, *, keep: bool) -> None:
        """It is taken up, or is to be tried again."""
        self._being_taken.pop(row_id, None)
        if not keep:
            self._rows.pop(row_id, None)

    def assign(self, row_ids: Iterable[int], turn: Turn) -> None:
        """A turn answers these."""
        self._rows |= dict.fromkeys(row_ids, turn)

    def turn(self, row_id: int) -> Turn | None:
        """The turn that a message came with."""
        return self._rows.get(row_id)

    def turns(self) -> Collection[Turn]:
        """All of them, each once."""
        return {id(turn): turn for turn in self._rows.values() if turn is not None}.values()

    def keep(self, row_ids: Set[int]) -> None:
        """Forget all others that are not just being taken up."""
        kept = row_ids | self._being_taken.keys()
        self._rows = {row: turn for row, turn in self._rows.items() if row in kept}

    def forget(self, row_ids: Iterable[int]) -> None:
        """These are done."""
        for row_id in row_ids:
            self._rows.pop(row_id, None)

    def give_back(self, turns: Iterable[Turn]) -> None:
        """A look takes up what these were to answer, before what came after it."""
        for turn in turns:
            self.forget(row.id for row in turn.rows)
            before = self._given_back.get(turn.session, {})
            self._given_back[turn.session] = before | {row.id: row for row in turn.rows}

    def was_released(self, session: SessionKey) -> bool:
        """Whether something of a session is to be taken up by a look."""
        return session in self._given_back

    def comes_later(self, row: InboxRow) -> bool:
        """Whether a look is to take up what goes before a row: another one than takes it up."""
        seen = self._seen if row.id in self._found else {}
        return self._given_back.get(row.session) is not seen.get(row.session)

    @contextmanager
    def look(self) -> Iterator[None]:
        """A look is under way: it takes up what was given back until now, but nothing later."""
        self._seen = dict(self._given_back)
        try:
            yield
            for session, rows in self._seen.items():
                if self._given_back.get(session) is rows:
                    del self._given_back[session]
        finally:
            self._seen, self._found = {}, set()

    def found(self, row: InboxRow) -> None:
        """The look that is under way takes this up."""
        self._found.add(row.id)

    def on_their_way(self, session: SessionKey) -> list[InboxRow]:
        """What is being taken up of a session, and what was given back and no look has found."""
        being_taken = [row for row in self._being_taken.values() if row.session == session]
        given_back = self._given_back.get(session, {}).values()
        return [*being_taken, *(row for row in given_back if row.id not in self._rows)]

    def clear(self) -> None:
        """They belong to others."""
        self.life += 1
        self._rows.clear()
        self._given_back.clear()
