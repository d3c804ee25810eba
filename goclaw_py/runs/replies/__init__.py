"""Replies of runs: while they are written, the line about tools and waiting, the final one."""
