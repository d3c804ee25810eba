"""Texts that turn the direction of what follows, on pages (SPEC SEC-1)."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from goclaw_py.web.pages.rendering import token_name, with_closed_marks

RLO, LRI, RLI, PDF, PDI = "\u202e", "\u2066", "\u2067", "\u202c", "\u2069"


@pytest.mark.parametrize(("text", "added"), [
    ("plain", ""), ("שלום", ""), (f"a{RLO}b", PDF), (f"{RLO}a{PDF}b", ""),
    (f"{RLO}a{LRI}b", PDI + PDF), (f"{RLI}a{RLO}b{PDI}c", ""), (f"{PDI}{PDF}a", ""),
    # In an isolate nothing ends what began before it.
    (f"{RLO}{LRI}{PDF}", PDI + PDF), (f"{RLO}{PDI}", PDF),
])  # fmt: skip
def test_what_turns_a_text_ends_with_it(text: str, added: str) -> None:
    assert with_closed_marks(text) == text + added


@pytest.mark.parametrize("value", [3, None, Markup(f"<b>{RLO}</b>")])
def test_what_is_no_text_stays_as_it_is(value: object) -> None:
    assert with_closed_marks(value) is value


def test_the_token_of_the_settings_has_words_in_place_of_its_name() -> None:
    """It is no person, and ``web.token`` is a setting."""
    assert token_name("web.token") == "token of the settings"
    assert token_name("ann") == "ann"
