"""The HTTP server: API, dashboard, webhooks, over TCP and over the socket in the state folder.

Start at ``server``. ``api`` has a module for each resource, ``pages`` the dashboard, ``caco`` the
schedule API of *caco*; ``guard`` and ``signin`` check access.
"""
