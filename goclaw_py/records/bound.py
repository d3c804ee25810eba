"""The store of this process: it has the id of its node, and can wait for the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, cast

from goclaw_py.core.ids import NodeId
from goclaw_py.core.retry import retry_until_available
from goclaw_py.records import Store


class Bound(Protocol):
    """A store bound to the node of this process."""

    def node(self) -> NodeId:
        """Return the present id of this node, which gets another one after its lease has ended.

        What belongs to a claim is stored in the name of the id that has claimed it.
        """

    def live(self) -> NodeId | None:
        """Return this node; None when other nodes may have taken over its work."""

    @property
    def retried(self) -> Self:
        """The same store; its coroutines wait while the database is unavailable.

        Only for what may be repeated after an unknown outcome. Each attempt has the same arguments.
        See ``retry_until_available``.
        """


class BoundStore(Store, Bound, Protocol):
    """The whole database, bound to the node of this process."""


def bind(
    store: Store, node: Callable[[], NodeId], live: Callable[[], NodeId | None] | None = None
) -> BoundStore:
    """Return the store bound to a node; without ``live`` its lease never ends."""
    return cast("BoundStore", _BoundStore(store, node, live or node))


class _BoundStore:
    def __init__(
        self, store: Store, node: Callable[[], NodeId], live: Callable[[], NodeId | None]
    ) -> None:
        self._store = store
        self.node = node
        self.live = live
        self.retried = _RetriedStore(store)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _RetriedStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            # Found anew by each attempt, as a call without this would be.
            return await retry_until_available(lambda: getattr(self._store, name)(*args, **kwargs))

        return call
