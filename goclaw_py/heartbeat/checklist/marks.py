"""All items of a checklist with their marks, those that are done too; and taking one out."""

from __future__ import annotations

from dataclasses import dataclass

from goclaw_py.heartbeat.checklist.lines import read_lines
from goclaw_py.heartbeat.checklist.parser import (
    NOBODY,
    ChecklistEntry,
    RowKind,
    Tree,
    read_tree,
    says_nothing,
)
from goclaw_py.model.errors import BadChecklist


@dataclass(frozen=True, slots=True)
class CheckboxItem:
    """An item as it stands in the file.

    Args:
        place: Which of all bullets it is, from 0; ``without`` takes it.
        number: Its number among the open ones, from 1, as ``Item`` has it; None if it is done.
        depth: In how many others it is.
        every: Its interval in the words of the file, "" if it has none or is done.
    """

    place: int
    text: str
    number: int | None
    depth: int = 0
    every: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it is ticked off, or is in one that is."""
        return self.number is None


def marks(text: str) -> tuple[CheckboxItem, ...]:
    """The items that say something, in the order of the file."""
    found: list[CheckboxItem] = []
    depths: list[int] = []
    open_before = 0
    for place, entry in enumerate(read_tree(text).entries):
        depths.append(0 if entry.parent == NOBODY else depths[entry.parent] + 1)
        open_before += entry.is_item
        if entry.is_item:
            found.append(CheckboxItem(place, entry.text, open_before, depths[place], entry.words))
        elif entry.is_done and not says_nothing(entry.text):
            found.append(CheckboxItem(place, entry.text, None, depths[place]))
    return tuple(found)


def without(text: str, place: int) -> str:
    """The file without an item and all that is in it.

    Raises ``BadChecklist`` if there is no such item, and if its lines cannot be taken out without
    changing what others say, as where a comment begins in one of them.
    """
    tree = read_tree(text)
    if not 0 <= place < len(tree.entries):
        raise BadChecklist("there is no such item")
    gone = _family(tree, place)
    starts = [*(line.start for line in read_lines(text)), len(text)]
    first, behind = _lines_of(tree, gone)
    left = text[: starts[first]] + text[starts[behind] :]
    kept = [_said(entry) for number, entry in enumerate(tree.entries) if number not in gone]
    if [_said(entry) for entry in read_tree(left).entries] != kept:
        raise BadChecklist("this item cannot be taken out alone; change the text of the file")
    return left


def _said(entry: ChecklistEntry) -> tuple[str, bool]:
    return entry.text, entry.is_done


def _family(tree: Tree, place: int) -> set[int]:
    """An entry with all that are in it: these follow it."""
    family = {place}
    for number, entry in enumerate(tree.entries):
        if entry.parent in family:
            family.add(number)
    return family


def _lines_of(tree: Tree, family: set[int]) -> tuple[int, int]:
    """The first line of what these entries own, and the one behind the last."""
    line, owned = 0, []
    for row in tree.rows:
        # A heading with a line below it is one row.
        following = line + (2 if row.kind is RowKind.HEADING and "\n" in row.text else 1)
        if row.owner in family:
            owned += [line, following]
        line = following
    return owned[0], owned[-1]
