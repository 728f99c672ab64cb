# SPDX-License-Identifier: MIT
"""The command line, a module per command."""
