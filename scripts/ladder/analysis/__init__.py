# SPDX-License-Identifier: MIT
"""What results mean: speeds, gains, roofs, limits, histories."""
