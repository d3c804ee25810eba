"""Sentences and amounts, as chats, the command line and web pages show them."""

from __future__ import annotations

from decimal import Decimal

from goclaw_py.common.text import cut_text
from goclaw_py.model.run_events import Usage


def clause(text: str, limit_chars: int) -> str:
    """Return a text on one line, without a full stop, to be put into a sentence."""
    return cut_text(" ".join(text.split()), limit_chars).rstrip(".")


def sentence(text: str) -> str:
    """Return a clause with a capital letter and a full stop; "" as it is."""
    ends = ("", ".", "!", "?", "…")
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ends else ".")


def usd(amount: Decimal) -> str:
    """Return an amount of money; below a dollar it has four digits."""
    if 0 < amount < Decimal("0.0001"):
        return "< $0.0001"
    return f"${amount:.2f}" if amount == 0 or amount >= 1 else f"${amount:.4f}"


def cost(used: Usage | None) -> str:
    """Return the price, tokens where it is not known, or "" if nothing was used."""
    if used is None or (used.cost_usd is None and not used.tokens):
        return ""
    return f"{used.tokens:,} tokens" if used.cost_usd is None else usd(used.cost_usd)
