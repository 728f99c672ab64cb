# SPDX-License-Identifier: MIT
"""The command `ladder gate`: compare, in a line."""

from ladder.commands.compare import EPILOG, USAGE
from ladder.commands.compare import add_shared as add
from ladder.commands.compare import gate as run

__all__ = ["EPILOG", "USAGE", "add", "run"]
