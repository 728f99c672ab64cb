# SPDX-License-Identifier: MIT
"""Tables as they are printed: their rows, and a document that one is written into."""

MARKED = "# Title\n<!-- ladder:table {} -->\nold\n<!-- ladder:end -->\ntail\n"


def table_rows(text: str) -> dict[str, list[str]]:
    """Rows of Markdown tables, as cells, by their first cell."""
    cells = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row for row in cells}
