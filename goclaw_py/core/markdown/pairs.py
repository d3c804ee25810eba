"""Pairs runs of marks, each as a whole: what is left of a run would be a wrong character.

CommonMark pairs parts of runs: of ``**kwargs, 2*`` it takes one asterisk at both ends. Here ``**``
closes ``**`` whatever stands between. Only a run of three may begin or end two emphases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter

_BOTH = 3
"""The marks of an emphasis within a strong one."""


def pair_runs(state: StateInline) -> None:
    """Set ``end`` of delimiters that open something."""
    _pair(state.delimiters)
    for within in state.tokens_meta:
        if within and "delimiters" in within:
            _pair(within["delimiters"])


def _pair(delimiters: Sequence[Delimiter]) -> None:
    opened = _OpenedRuns(delimiters)
    first = 0
    while first < len(delimiters):
        run, size = delimiters[first], _size(delimiters, first)
        if not (run.close and opened.close(run.marker, first, size)) and run.open:
            opened.add(run.marker, first, size)
        first += size
    opened.drop_until(0)


def _size(delimiters: Sequence[Delimiter], first: int) -> int:
    """Return the number of delimiters that are beside each other and alike."""
    end = first + 1
    while (
        end < len(delimiters)
        and delimiters[end].marker == delimiters[first].marker
        and delimiters[end].token == delimiters[end - 1].token + 1
    ):
        end += 1
    return end - first


@dataclass(slots=True)
class _Run:
    """Delimiters beside each other, of which ``left`` may still open something."""

    mark: int
    first: int
    size: int
    left: int


class _OpenedRuns:
    """A stack of runs that nothing has closed yet."""

    def __init__(self, delimiters: Sequence[Delimiter]) -> None:
        self._delimiters = delimiters
        self._runs: list[_Run] = []
        self._places: dict[tuple[int, int], list[int]] = {}
        """Places in the stack by mark and number of marks left; some of them are out of date."""

    def add(self, mark: int, first: int, size: int) -> None:
        self._places.setdefault((mark, size), []).append(len(self._runs))
        self._runs.append(_Run(mark, first, size, size))

    def close(self, mark: int, first: int, size: int) -> bool:
        """Pair a run with one or two opened ones; return whether it found them."""
        if (whole := self._nearest(mark, size)) >= 0:
            self._pair(whole, first, size)
            return True
        if size == _BOTH:
            one, two = self._nearest(mark, 1), self._nearest(mark, 2)
            if min(one, two) < 0:
                return False
            inner = 1 if one > two else 2
            self._pair(max(one, two), first, inner)
            self._pair(min(one, two), first + inner, _BOTH - inner)
            return True
        if size < _BOTH and (both := self._nearest(mark, _BOTH)) >= 0:
            self._pair(both, first, size)
            return True
        return False

    def drop_until(self, place: int) -> None:
        """Forget the newest runs; what was paired of one that is not closed, is not paired."""
        while len(self._runs) > place:
            run = self._runs.pop()
            for delimiter in self._delimiters[run.first : run.first + run.size]:
                delimiter.end = -1

    def _nearest(self, mark: int, left: int) -> int:
        """Return the place of the newest run with so many marks left; -1 if there is none."""
        places = self._places.get((mark, left), [])
        while places:
            place = places[-1]
            if place < len(self._runs):
                run = self._runs[place]
                if (run.mark, run.left) == (mark, left):
                    return place
            places.pop()
        return -1

    def _pair(self, place: int, first: int, size: int) -> None:
        """Pair the last marks of a run with those from ``first`` on."""
        self.drop_until(place + 1)
        run = self._runs[place]
        for number in range(size):
            self._delimiters[run.first + run.left - 1 - number].end = first + number
        run.left -= size
        if run.left:
            self._places.setdefault((run.mark, run.left), []).append(place)
        else:
            self._runs.pop()
