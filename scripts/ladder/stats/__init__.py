# SPDX-License-Identifier: MIT
"""What can be said in spite of noise: intervals, verdicts, change points, references."""
