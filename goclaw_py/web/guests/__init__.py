"""The web chat of invited people: personal links, and the pages behind them (SPEC CHAN-13)."""

from goclaw_py.web.guests.entrance import Guests
from goclaw_py.web.guests.site import make_guest_site

__all__ = ["Guests", "make_guest_site"]
