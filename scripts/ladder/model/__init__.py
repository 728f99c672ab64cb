# SPDX-License-Identifier: MIT
"""What the rest speaks of: ladders, counters, units, errors. It imports nothing of the package."""
