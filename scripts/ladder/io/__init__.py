# SPDX-License-Identifier: MIT
"""Reads files and writes them: results, profiles, what emulators tell beside them."""
