# SPDX-License-Identifier: MIT
"""Builds the benchmark programs of a checkout, by its own scripts/setup.sh."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ladder.model import errors
from ladder.model.errors import LadderError

_NO_CONFIGURATION = 100  # exit status, which none of the tools has
_BUILD = f"""
. "$1/scripts/setup.sh"
configure || exit {_NO_CONFIGURATION}
[ "$2" != ladder_bench ] || has_cuda_build ||
  fail "CMake cannot use $(command -v nvcc): see build/default/CMakeFiles/CMakeError.log"
compile "$2"
"""
_HAS_NVCC = '. "$1/scripts/setup.sh"; has_nvcc'
_PROGRAMS = {"ladder_bench": "", "ladder_bench_emulated": "benchmarks/emulated/"}


class BuildError(LadderError):
    """A program that could not be built; the build has printed why."""

    exit_code = errors.FAILED


class SetupError(BuildError):
    """A build that could not be configured on this machine."""


def has_nvcc(checkout: Path) -> bool:
    """Whether a new enough CUDA Toolkit is installed."""
    return _run(_HAS_NVCC, str(checkout)) == 0


def build(checkout: Path, target: str) -> Path:
    """Set up what a program needs, build it and return where it is. Raises BuildError."""
    status = _run(_BUILD, str(checkout), target)
    if status == _NO_CONFIGURATION:
        raise SetupError("the build cannot be set up, see above")
    if status:
        raise BuildError(f"{target} cannot be built, see above")
    return checkout / "build/default" / _PROGRAMS[target] / target


def _run(script: str, *arguments: str) -> int:
    """Run a script of Bash, from the terminal that this runs from: it may ask for a password."""
    command = ["bash", "-c", script, "study", *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()  # it ends what it has started
            raise
