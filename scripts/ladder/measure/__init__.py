# SPDX-License-Identifier: MIT
"""Runs benchmark programs, so that a failure costs a row and no more."""
