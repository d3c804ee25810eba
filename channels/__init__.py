"""Chat channels. Each is a plug-in that imports only the ports and the model of goclaw_py."""
