# SPDX-License-Identifier: MIT
"""Statistics: intervals, verdicts, change points, references."""
