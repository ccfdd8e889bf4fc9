"""PostgreSQL and Valkey from their wheels, each for one data directory."""


class CannotStart(Exception):
    """Something that a person must put right first. The text is one sentence that says what and how."""
