"""Run ids are UUIDs of version 7."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.ids import uuid7

times = st.integers(0, 2**48 - 1)
entropies = st.integers(0, 2**74 - 1)


@given(times, entropies)
def test_an_id_is_a_uuid_of_version_7_in_its_usual_form(unix_ms: int, entropy: int) -> None:
    text = uuid7(unix_ms, entropy)
    parsed = UUID(text)
    assert str(parsed) == text
    assert parsed.version == 7
    assert parsed.variant == RFC_4122


@given(times, entropies)
def test_an_id_holds_its_time_and_all_of_its_randomness(unix_ms: int, entropy: int) -> None:
    value = UUID(uuid7(unix_ms, entropy)).int
    assert value >> 80 == unix_ms
    assert (value >> 64 & 0xFFF) << 62 | value & 2**62 - 1 == entropy


@given(times, times, entropies, entropies)
def test_ids_sort_by_time_as_text(first: int, second: int, one: int, other: int) -> None:
    if first < second:
        assert uuid7(first, one) < uuid7(second, other)


def test_surplus_randomness_does_not_spill_into_time_and_version() -> None:
    assert uuid7(0, 2**200 - 1) == "00000000-0000-7fff-bfff-ffffffffffff"
    assert uuid7(2**60 - 1, 0) == "ffffffff-ffff-7000-8000-000000000000"


def test_a_known_example() -> None:
    """RFC 9562, appendix A.6."""
    entropy = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    assert uuid7(0x017F22E279B0, entropy) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
