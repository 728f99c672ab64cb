# SPDX-License-Identifier: MIT
"""Tables, plots and comparisons of CUDA kernel ladders from Google Benchmark JSON."""

from typing import Any

__all__ = ["ResultError", "load"]


def __getattr__(name: str) -> Any:
    """Import late, so that `python3 -m ladder` can say in one line what is missing."""
    if name not in __all__:
        raise AttributeError(f"module 'ladder' has no attribute '{name}'")
    from ladder.io import results

    return getattr(results, name)
