"""Chat channels. Each is a plug-in that imports only records, rules and protocols of goclaw_py."""
