# SPDX-License-Identifier: MIT
"""Results as a DataFrame: what `ladder.load` gives, and three questions put to it.

    PYTHONPATH=scripts .venv/bin/python docs/example.py [RESULTS...]

One row per benchmark. Times are in seconds, rates a second, occupancy and utilisation from 0 to 1;
`help(ladder.load)` has every column. In a notebook the functions below are cells.
"""

from __future__ import annotations

import sys

import ladder
import pandas as pd
from ladder.model.errors import LadderError


def best_rungs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the fastest step of each case, and its percent of the ladder's measured ceiling."""
    steps = rows[(rows["role"] == "step") & (rows["precision"] == "")]
    fastest = steps.loc[steps.groupby(["ladder", "case"])["seconds"].idxmin()]
    return fastest[["ladder", "case", "rung", "seconds", "percent_of_ceiling"]]


def over_peer(rows: pd.DataFrame) -> pd.Series:
    """Return by ladder how many times as fast as the best library the best step is: the median."""
    roles = rows[rows["role"].isin(["step", "peer"]) & (rows["precision"] == "")]
    seconds = roles.pivot_table("seconds", ["ladder", "case"], "role", "min")
    seconds = seconds.reindex(columns=["step", "peer"]).dropna()
    return (seconds["peer"] / seconds["step"]).groupby("ladder").median()


def most_conflicts(rows: pd.DataFrame, count: int = 5) -> pd.DataFrame:
    """Return the transposes whose loads from shared memory take most wavefronts per request."""
    counter = "shared_load_wavefronts_per_request"
    found = rows[rows["ladder"] == "transpose"].nlargest(count, counter)
    return found[["rung", "case", counter, "bytes_per_second"]]


def main() -> None:
    """Print the answers for results/, or for the files and directories that are named."""
    try:
        rows = ladder.load(sys.argv[1:] or "results")
    except LadderError as error:
        sys.exit(str(error))
    rows = rows[(rows["status"] == "ok") & (rows["source"] == "timed") & (rows["ladder"] != "")]
    if rows.empty:
        sys.exit("no timed rows of ladders")
    with pd.option_context("display.width", 120, "display.max_colwidth", 60):
        print(best_rungs(rows).to_string(index=False, max_rows=20), "\n")
        print(over_peer(rows).round(2).to_string(), "\n")
        print(most_conflicts(rows).to_string(index=False))


if __name__ == "__main__":
    main()
