"""The dashboard: pages rendered here, kept up to date by server-sent events (SPEC OPS-3).

``site`` puts the pages together, ``services`` has what every page needs, ``hub`` renders each live
part once for everyone who watches it, ``rendering`` is the only door to the template engine. A
page is a module with its routes here, and its templates have its name; or it is ``page`` in the
folder of a noun in ``operations``.
"""

from goclaw_py.web.pages.chat.conversations import SiteParts
from goclaw_py.web.pages.site import make_site

__all__ = ["SiteParts", "make_site"]
