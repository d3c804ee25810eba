"""The threat model, a test for each line: what is promised, what was tried, what happened."""
