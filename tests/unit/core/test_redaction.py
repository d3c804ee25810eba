"""No secret in what is read by others (SPEC SEC-2)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote, quote_plus

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.redaction import (
    HIDDEN,
    LIKE_A_KEY,
    LIKE_A_SECRET,
    MIN_SECRET,
    Redactor,
    _spelled,
    is_name_of_secret,
)
from tests.support.steps import Steps

TOKEN = "123456789:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
secrets = st.text(st.characters(exclude_categories=["Cs"]), min_size=MIN_SECRET, max_size=40)

SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "in an address": lambda secret: quote(secret, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in small letters": lambda secret: re.sub("%..", lambda m: m[0].lower(), quote(secret)),
    "in JSON": lambda secret: json.dumps(secret)[1:-1],
    "in JSON as it is": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "in JSON by others": lambda secret: orjson.dumps(secret).decode()[1:-1],
    "in JSON in JSON": lambda secret: json.dumps(json.dumps(secret)[1:-1])[1:-1],
    "by repr": lambda secret: repr(secret)[1:-1],
    "as bytes": lambda secret: repr(secret.encode())[2:-1],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(before=anything, secret=secrets, after=anything)
def test_a_secret_is_never_read_whatever_is_around_it(
    spelling: str, before: str, secret: str, after: str
) -> None:
    spelled = SPELLINGS[spelling](secret)
    shown = Redactor([secret])(f"{before}{spelled}{after}")
    # What is around may be, or make, the secret once more, or a part of the word for it.
    assert spelled not in shown.replace(HIDDEN, "") or spelled in before + after
    assert HIDDEN in shown


@given(before=anything, found=st.from_regex(LIKE_A_KEY) | st.from_regex(LIKE_A_SECRET))
def test_what_looks_like_a_secret_is_always_suspected(before: str, found: str) -> None:
    """A text that is not suspected is not searched."""
    text = before + found
    is_one = LIKE_A_KEY.search(text) or LIKE_A_SECRET.search(text)
    assert not is_one or Redactor().suspects(text)


@given(before=anything, secret=secrets, after=anything, spelling=st.sampled_from([*SPELLINGS]))
def test_a_known_secret_is_always_suspected(
    before: str, secret: str, after: str, spelling: str
) -> None:
    assert Redactor([secret]).suspects(before + SPELLINGS[spelling](secret) + after)


@given(parts=st.lists(st.text("ab", max_size=3), max_size=8), cuts=st.sets(st.integers(1, 11)))
def test_texts_that_together_have_a_secret_are_found(parts: list[str], cuts: set[int]) -> None:
    secret = "the-password"
    ends = [0, *sorted(cuts), len(secret)]
    pieces = [secret[begin:end] for begin, end in pairwise(ends)]
    hide = Redactor([secret])
    assert set(pieces) <= hide.split_over([*parts, *pieces, *parts])
    assert hide.split_over([*parts, "the-", "passwor", *parts]) == set()


def test_a_longer_secret_is_hidden_before_the_one_inside_of_it() -> None:
    assert Redactor(["abcdefgh", "abcdefgh-ijkl"])("say abcdefgh-ijkl!") == f"say {HIDDEN}!"


def test_what_is_short_stays_where_it_is_a_word() -> None:
    hide = Redactor(["goclaw"])
    assert hide("goclaw_py is ready") == "goclaw_py is ready"
    assert hide("postgresql://goclaw:goclaw@db/goclaw") == f"postgresql://goclaw:{HIDDEN}@db/goclaw"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"POST /bot{TOKEN}/getMe", f"POST /bot{HIDDEN}/getMe"),
        (f"/bot{TOKEN.replace(':', '%3A')}/getMe", f"/bot{HIDDEN}/getMe"),
        ("key sk-proj-abcdefgh is wrong", f"key {HIDDEN} is wrong"),
        ("Authorization: Bearer abc.def.ghi", f"Authorization: Bearer {HIDDEN}"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", f"{{'authorization': 'Basic {HIDDEN}'}}"),
        ('"api_key": "0123456789"', f'"api_key": "{HIDDEN}"'),
        ("/v1?key=1&access_token=0123456789&x=1", f"/v1?key=1&access_token={HIDDEN}&x=1"),
        ("redis://:hunter2@cache:6379/0", f"redis://:{HIDDEN}@cache:6379/0"),
        ("postgres://me:a%2Fb@db:5432/x", f"postgres://me:{HIDDEN}@db:5432/x"),
        ("host=db password=hunter2 user=me", f"host=db password={HIDDEN} user=me"),
        ("a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF b", f"a {HIDDEN} b"),
        (
            "X-Telegram-Bot-Api-Secret-Token: 0011aabbccdd",
            f"X-Telegram-Bot-Api-Secret-Token: {HIDDEN}",
        ),
        ("max_tokens: 4096000, tokens=1234567", "max_tokens: 4096000, tokens=1234567"),
        ("http://127.0.0.1:8420/api at 12:30:59", "http://127.0.0.1:8420/api at 12:30:59"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert Redactor()(text) == shown


def test_names_tell_what_is_secret() -> None:
    for name in ("token", "GOCLAW_TELEGRAM_TOKEN", "X-Api-Key", "apiKey"):
        assert is_name_of_secret(name)
    for name in ("session_key", "tokens", "run_id"):
        assert not is_name_of_secret(name)


HOSTILE = [
    *'a0*-.: A%"\\',
    *("sk-", "a-", "***a", "secret_", "secret-ke", "api_key", "token=", "token=a", "bearer "),
    *("eyJ", "eyJaaaaaaaaaa.", "://", "://a:", "://:", "password: '", "authorization: basic "),
    *("12345678:", "aaaaaaaa:", "-----BEGIN ", "%5c", "%3A", "\\\\u00e9"),
]
KNOWN = re.compile(_spelled('sécret-key"with \\ and\n%41aaaaaaaaaaaaaaaaaaaaaaaaaaaa'))
PATTERNS = {"key": LIKE_A_KEY, "secret": LIKE_A_SECRET, "known": KNOWN}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.slow
def test_twice_the_text_is_at_most_about_twice_the_work(
    pattern: re.Pattern[str], piece: str
) -> None:
    """In steps: a scrubber that was quadratic once stopped a whole gateway."""
    steps = Steps(pattern)
    # Beyond the bounds that repeats have.
    size = 1200
    once, twice = (steps.search((piece * size)[: size * n] + "!") for n in (1, 2))
    assert twice <= 2.2 * once


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
@given(st.lists(st.sampled_from([*HOSTILE, TOKEN, "@", "\n", "x"]), max_size=12))
def test_the_steps_are_counted_on_the_same_matches(
    pattern: re.Pattern[str], pieces: list[str]
) -> None:
    text = "".join(pieces)
    steps = Steps(pattern)
    steps.search(text)
    assert steps.found == [found.span() for found in pattern.finditer(text)]


def test_the_steps_tell_a_quadratic_pattern() -> None:
    steps = Steps(re.compile("[a-z]+@"))
    assert steps.search("a" * 400) > 3 * steps.search("a" * 200)
