# SPDX-License-Identifier: MIT
"""Programs run as a job of CI runs them."""

import os
import subprocess
from pathlib import Path


def run(
    command: list[str | Path], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with nothing that a job of CI has set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GIT_"))}
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
