"""The apps that a gateway serves. Imports the web framework: only ``AppsOnDemand`` needs it."""

from goclaw_py.web.api.routes import closing_of, make_api
from goclaw_py.web.guests import make_guest_site
from goclaw_py.web.pages import SiteParts, make_site

__all__ = ["SiteParts", "closing_of", "make_api", "make_guest_site", "make_site"]
