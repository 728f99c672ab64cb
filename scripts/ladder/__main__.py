# SPDX-License-Identifier: MIT
"""Run the command line as `python3 -m ladder`."""

import sys

from ladder.cli import main

sys.exit(main())
