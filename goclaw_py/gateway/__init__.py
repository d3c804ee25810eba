"""The gateway as a whole: all features wired together, and what operators do with it.

Start at ``container``, which builds the features. ``service`` and ``queries`` are what API, CLI
and pages call; ``why`` explains why something did or did not happen.
"""
