"""Proxies of the environment, HTTP sessions through them, addresses of databases."""
