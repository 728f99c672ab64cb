# SPDX-License-Identifier: MIT
"""Reads and writes files: results, profiles, details of emulated results."""
