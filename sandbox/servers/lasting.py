"""A process that is meant to outlive whoever starts it."""

import subprocess


class Lasting(subprocess.Popen[bytes]):
    """Like Popen, but to end without waiting for it is no mistake, so Python does not warn."""

    def __del__(self) -> None:
        """Say nothing; a process that is still running belongs to init when this one has ended."""
