"""Who is signed in to the dashboard, and tokens of programs (SPEC SEC-6, SEC-8).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``noun`` is for everyone else. What lets a request in, by a
sign-in or a token, is in ``web``.
"""
