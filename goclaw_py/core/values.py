"""Values of which several are made for each message.

A frozen dataclass is set up by one call for each field, four times as slow as an ordinary one; for
an answered message that was a tenth of the gateway's CPU. ``value`` is ``dataclass`` for the type
checker, which refuses assignments; at run time nothing freezes the instances. Equality and hash
are those of a frozen dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass

    def value(*, frozen, **options):
        """Return a decorator for a class whose instances are never changed."""
        assert frozen
        return dataclass(unsafe_hash=True, **options)


__all__ = ["value"]
