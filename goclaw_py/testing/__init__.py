"""What tests of this project, and of channels and agents written by others, are made of.

Virtual time instead of sleeps, fakes instead of mocks. Uses the standard library only.
"""
