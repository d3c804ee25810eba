"""The process: builds all parts from the settings, starts and ends them.

Start at ``service`` (the gateway's process) and ``parts`` (settings to channels, agents, rules).
This is the only package that knows every concrete part. Nothing is imported here: a command that
needs the database alone does not pay for the web server.
"""
