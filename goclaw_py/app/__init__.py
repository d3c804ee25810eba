"""The gateway process: creates all parts from the settings, starts them and shuts them down.

Start at ``service`` (the gateway's process) and ``parts`` (settings to channels, agents, rules).
This is the only package that imports every concrete part. Nothing is imported here, so that
commands that need only the database do not load the web server.
"""
