"""Cron."""
