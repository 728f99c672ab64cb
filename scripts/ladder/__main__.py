# SPDX-License-Identifier: MIT
"""Run the command line as `python3 -m ladder`."""

import sys

try:
    from ladder.cli import main

    sys.exit(main())
except ModuleNotFoundError as error:
    if (error.name or "ladder").partition(".")[0] == "ladder":  # a fault of ours
        raise
    told = f"needs {error.name}: run scripts/study once, or pip install -e ."
    print(f"ladder: {told}", file=sys.stderr)
    sys.exit(2)
