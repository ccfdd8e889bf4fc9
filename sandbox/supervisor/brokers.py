"""The broker of somebody else."""

import redis

from sandbox.servers import CannotStart


def check(url: str) -> None:
    """Refuse a broker that does not answer."""
    try:
        with redis.Redis.from_url(url, socket_timeout=10, socket_connect_timeout=10) as client:
            client.ping()
    except ValueError:
        raise CannotStart("REDIS_URL is not an address of a broker, such as redis://:password@host:6379/0.") from None
    except redis.RedisError as error:
        raise CannotStart(f"The broker of REDIS_URL does not answer ({str(error).rstrip('.')}).") from None
