"""Starts, watches and stops everything that one data directory needs: `manage.py up`, `down` and `status`."""
