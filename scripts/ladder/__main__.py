# SPDX-License-Identifier: MIT
"""Run the command line as `python3 -m ladder`, and as `ladder`."""

import atexit
import gc
import sys

from ladder.model import errors


def main() -> int:
    """Run the command line; even loading it can lack a package or be interrupted."""
    gc.set_threshold(1_000_000)  # rows and figures are many objects that stay: seldom search them
    atexit.register(gc.freeze)  # nor to find at the end which of them refer to each other: all go
    try:
        from ladder.commands import cli

        return cli.main()
    except ModuleNotFoundError as error:
        return errors.lacking(error)
    except KeyboardInterrupt:
        return errors.interrupted()


if __name__ == "__main__":
    sys.exit(main())
