"""Sign-in by an OpenID provider (SPEC SEC-10).

``client`` and ``claims`` are light; ``provider`` imports authlib, and is imported at the first
sign-in only.
"""
