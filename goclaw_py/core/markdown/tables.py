"""The rule for tables: a row loses no cell, and text below a table is no row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import table as gfm_table
from markdown_it.token import Token

_SIGN = re.compile(r"\\\||\|\||`+|\|")


def table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a table.

    GitHub's tables drop what is too much for the columns, also where a bar is part of code
    (``a|b``) or of an operator (``a || b``), and take each line below for a row.
    """
    before = len(state.tokens)
    if not gfm_table(state, start, end, silent):
        return False
    if silent:
        return True
    tokens = state.tokens
    rows = [place for place in range(before, len(tokens)) if tokens[place].type == "tr_open"]
    columns = sum(token.type == "th_open" for token in tokens[before : rows[-1]]) or 1
    for place in rows[1:]:
        line = (tokens[place].map or [start])[0]
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
        if "|" not in text:
            if place == rows[1]:
                # Without rows there is no body either.
                del tokens[place - 1 : -1]
            else:
                del tokens[place:-2]
            state.line = line
            break
        if text.count("|") > columns - 1:
            _fill(tokens[place : place + 3 * columns + 1], text, columns)
    return True


def _fill(row: Sequence[Token], text: str, columns: int) -> None:
    """Set the cells of a row whose text has more bars than separate its columns."""
    for is_code, is_pair in ((False, False), (True, False), (True, True)):
        cells = _cells(text, is_code=is_code, is_pair=is_pair)
        if len(cells) <= columns:
            break
    else:
        cells = _cells(text, is_code=True, is_pair=False)
        cells[columns - 1 :] = ["|".join(cells[columns - 1 :])]
    contents = iter(cells)
    for token in row:
        if token.type == "inline":
            token.content = next(contents, "").strip()


def _cells(text: str, *, is_code: bool, is_pair: bool) -> list[str]:
    """Split a row between bars; not within code or in two bars, if these may be meant."""
    last = {len(run[0]): run.start() for run in re.finditer("`+", text)} if is_code else {}
    cells = [""]
    begin = code = 0
    for sign in _SIGN.finditer(text):
        found = sign[0]
        cells[-1] += text[begin : sign.start()]
        begin = sign.end()
        if found[0] == "`":
            if code == len(found):
                code = 0
            elif not code and last.get(len(found), 0) > sign.start():
                code = len(found)
            cells[-1] += found
        elif found == r"\|":
            cells[-1] += "|"
        elif code or (found == "||" and is_pair):
            cells[-1] += found
        else:
            cells += [""] * len(found)
    cells[-1] += text[begin:]
    # The bars at both ends separate nothing.
    return cells[cells[0] == "" : len(cells) - (cells[-1] == "" and len(cells) > 1)]
