"""The gateway as a whole: all features connected, and the operator's view of them.

Start at ``container``, which builds the features. ``service``, ``store_control`` and ``queries``
serve API, CLI and pages; ``why`` explains why something did or did not happen.
"""
