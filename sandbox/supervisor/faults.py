"""What goes wrong on a machine, as one sentence and exit code 1."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management.base import OutputWrapper

from sandbox.servers import CannotStart


@contextmanager
def told(stderr: OutputWrapper) -> Iterator[None]:
    """Turn the faults that a person can put right into a sentence; every other keeps its traceback."""
    try:
        yield
    except CannotStart as fault:
        stderr.write(str(fault))
        sys.exit(1)
    except psycopg.Error as fault:
        stderr.write(f"The database refused: {str(fault).strip().splitlines()[0]}.")
        sys.exit(1)
    except OSError as fault:
        stderr.write(sentence(fault))
        sys.exit(1)


def sentence(fault: OSError) -> str:
    """Return what the operating system refused."""
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full: free some space and start again."
    return f"{fault.filename or 'The system'}: {fault.strerror or fault}."
