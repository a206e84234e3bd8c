"""aiohttp, loaded when it is needed."""

from __future__ import annotations

from typing import Any

from esault.errors import EsaultError

__all__ = ["library"]


def library(who: str, error: type[EsaultError]) -> Any:
    """Return the module aiohttp. Raises `error` where it is not installed."""
    try:
        import aiohttp
    except ImportError:
        raise error(f"{who} needs aiohttp: pip install 'esault[http]'") from None
    return aiohttp
