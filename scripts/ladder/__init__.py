# SPDX-License-Identifier: MIT
"""Tables, plots and comparisons of CUDA kernel ladders from Google Benchmark JSON."""

from ladder.results import ResultError, load

__all__ = ["ResultError", "load"]
