"""Measures whether a gateway answers while a model sends it far too much."""
