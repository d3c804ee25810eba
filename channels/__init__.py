"""Chat channels. Each is a plug-in: it sees the ports and the core of goclaw_py, nothing else."""
