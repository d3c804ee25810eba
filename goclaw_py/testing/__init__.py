"""Test tools for this project and for channels and agents of other authors.

Virtual time instead of sleeps, fakes instead of mocks. Uses the standard library only.
"""
