"""Personal links to the web chat, and the browsers that used them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WebLink:
    """A personal link, and once it is used, the browser that is signed in by it.

    Args:
        name: The invited person, a guest of channel ``web``.
        link_hash: The hash of the secret in the link.
        expires_at: When the unused link expires, or the sign-in of the browser.
        used_at: When it was used, None if it was not.
        cookie_hash: The hash of the browser's cookie, None if it was not used.
    """

    name: str
    link_hash: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    cookie_hash: str | None = None


class WebLinkStore(Protocol):
    """Personal links to the web chat (SPEC CHAN-13).

    ``PeopleStore.revoke`` deletes the links of a person, too.
    """

    async def invite(
        self, name: str, link_hash: str, *, again: bool, now: datetime, expires_at: datetime
    ) -> bool:
        """Approve a person of channel ``web`` as guest, and store a link for them.

        With ``again`` the person may be approved already; the new link then replaces their unused
        ones, and their browsers stay signed in. Without, it returns False and changes nothing if
        the person is approved already. Sends ``Notice.PEOPLE``.
        """

    async def web_links(self) -> list[WebLink]:
        """Return all links, also expired ones, the newest first."""

    async def web_link(self, link_hash: str) -> WebLink | None:
        """Return a link in any state; None if it is not stored."""

    async def use_web_link(
        self, link_hash: str, cookie_hash: str, *, now: datetime, until: datetime
    ) -> WebLink | None:
        """Use a link, unless it is used or expired; None if it is not stored.

        The cookie is valid ``until``. Returns the link as it is afterwards: it has ``cookie_hash``
        if this call has used it. Of calls at the same time one uses it.
        """

    async def web_link_of_cookie(self, cookie_hash: str, *, now: datetime) -> WebLink | None:
        """Return the link by which a browser is signed in; None if it is not, or not any more."""

    async def end_web_sign_in(self, cookie_hash: str) -> None:
        """Sign a browser out: delete its link."""
