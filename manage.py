#!/usr/bin/env python
"""Run a management command under the database login that the command needs."""

import os
import sys

from config.commands import login_for


def main() -> None:
    """Name the settings and the login before Django reads either."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("BACKSTOP_LOGIN", login_for(sys.argv[1:]))
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError
    from psycopg_pool import PoolTimeout

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as fault:  # whoever starts it needs the sentence, not our stack
        sys.exit(str(fault))
    except (OperationalError, PoolTimeout) as fault:
        said = str(fault).strip().splitlines()[0]
        sys.exit(f"PostgreSQL does not answer ({said}). Start an instance with: manage.py up, or set DATABASE_URL.")


if __name__ == "__main__":
    main()
