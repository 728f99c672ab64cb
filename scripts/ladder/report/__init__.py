# SPDX-License-Identifier: MIT
"""What people read: tables, comparisons, pages, figures, JUnit."""
