"""The pages that sign people in, by token or elsewhere, and out."""
