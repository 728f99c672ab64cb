# SPDX-License-Identifier: MIT
"""The command `ladder gate`: `compare --quiet`."""

from ladder.commands.compare import EPILOG, USAGE, run
from ladder.commands.compare import add_quiet as add

__all__ = ["EPILOG", "USAGE", "add", "run"]
