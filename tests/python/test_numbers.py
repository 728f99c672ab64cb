# SPDX-License-Identifier: MIT
"""Numbers in running text are those of the results: data/numbers.csv says which number is what.

Its columns are the page; `text`, a fragment of the page that holds the number and nothing else in
figures; and `value`, an expression over the functions of `VALUES`, with commas between several
numbers of one fragment. Where a number is no result, `value` is empty and `source` says what it is.
"""

import csv
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from conftest import committed
from ladder.analysis import roofs
from ladder.analysis.study import Study, own_speed, studies
from ladder.io import files
from ladder.io.results import Results, load_results
from ladder.model.rows import Row, bare

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/ladders/{p.name}" for p in (ROOT / "docs/ladders").iterdir())]
PAGES += [f"docs/{name}.md" for name in ("counters", "emulator", "method", "power", "splitting")]
with (Path(__file__).parent / "data/numbers.csv").open(encoding="utf-8", newline="") as file:
    ENTRIES = list(csv.DictReader(file))

WORDS = dict(
    zip(
        "one two three four five six seven eight nine ten sixteen".split(),
        [*range(1, 11), 16],
        strict=True,
    )
) | {"twice": 2, "half": 2, "third": 3, "quarter": 4, "eighth": 8}
NUMBER = rf"(?<![\w.^/-])(?:\d+(?: \d{{3}})*(?:\.\d+)?(?![\d.]*\d)|(?:{'|'.join(WORDS)})\b)"
UNIT = (
    "[GT]B/s|TFLOP/s|%|percent|times|×|[num]?s|seconds?|[GM]Hz|cycles?|clocks?|wavefronts?"
    "|sectors?|[KMG]i?B"
)
MEASURED = re.compile(
    rf"{NUMBER} ?(?:{UNIT})(?!\w)|factor of {NUMBER}|(?<![\w.^])\d+\.\d+|\btwice\b"
    r"|\b(?:half|third|quarter|eighth) (?:of|as)\b"
)
H100, H200 = "nvidia-h100-80gb-hbm3", "nvidia-h200"


@cache
def running_text(page: str) -> str:
    """A page without generated tables, listings and the targets of links, on one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- ladder:table.*?<!-- ladder:end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"\s+", " ", text)


def results(name: str = H200) -> Results:
    return committed(name)


@cache
def rows(name: str) -> dict[str, Row]:
    return {bare(row.name): row for row in results(name).rows}


@cache
def row(name: str, of: str = H200) -> Row:
    """A row by its name; the last part may be left out where the ladder's headline has it."""
    if "/" not in name.partition("/")[2]:
        (study,) = (s for s in studies(results(of)) if s.ladder.name == name.partition("/")[0])
        name = f"{name}/{study.headline}"
    return rows(of)[name]


def roof(name: str, of: str = H200) -> float:
    """A measured roof in bytes, FLOP or atomics a second."""
    return own_speed(roofs.measured(results(of))[name])


def clocks(of: str = H200) -> float:
    """Clocks per second of all SMs."""
    context = results(of).context
    return float(context["sms"]) * float(context["sm_clock_max_hz"])


def fastest(ladder: str, counter: str) -> list[float]:
    """A counter of the rows of the rung `fastest`."""
    return [r.counter(counter) for r in results().rows if r.name.startswith(f"{ladder}/fastest/")]


@cache
def by_ladder(of: str) -> dict[str, Study]:
    """The ladders of a GPU's results."""
    return {s.ladder.name: s for s in studies(results(of)) if s.ladder.name != "roof"}


def best(ladder: str, of: str = H200, case: str = "") -> float:
    """Speed of the best rung at a ladder's headline shape, or at another."""
    study = by_ladder(of)[ladder]
    return own_speed(study.best_step(case or study.headline))


def dearer(ladder: str, of: str) -> float:
    """How much more energy the fastest rung takes than the cheapest at the headline, in percent."""
    study = by_ladder(of)[ladder]
    steps = [rung.name for rung in study.ladder.rungs if rung.role == "step"]
    known = [rows(of).get(f"{ladder}/{step}/{study.headline}") for step in steps]
    measured = [row for row in known if row and row.joules]
    fastest = max(measured, key=study.speed)
    return 100 * (fastest.joules / min(row.joules for row in measured) - 1)


def faster(*ladders: str) -> list[float]:
    """How many times as fast the best rungs of ladders are on the H200 as on the H100."""
    return [best(ladder) / best(ladder, H100) for ladder in ladders]


def changed_places() -> tuple[int, int]:
    """At how many shapes the best rung of one GPU is more than 2 % slower on the other; of all."""
    changed = of = 0
    others = by_ladder(H200)
    for name, study in by_ladder(H100).items():
        if not (other := others.get(name)):
            continue
        for case in set(study.cases) & set(other.cases):
            pair = study.best_step(case), other.best_step(case)
            if all(pair):
                of += 1
                there = rows(H200).get(bare(pair[0].name)), rows(H100).get(bare(pair[1].name))
                changed += any(
                    each and each.seconds > 1.02 * fastest.seconds
                    for each, fastest in zip(there, reversed(pair), strict=True)
                )
    return changed, of


@cache
def tuning(of: str) -> dict:
    """What `ladder tune` wrote on a GPU."""
    return tomllib.loads((ROOT / f"results/{of}/tuning.toml").read_text(encoding="utf-8"))


def tuned(crossover: str, of: str) -> float:
    """The value of a crossover on a GPU."""
    ladder, name = crossover.split(".")
    return tuning(of)[ladder][name]


def near_best(of: str, *, held_out: bool = False) -> tuple[int, int]:
    """At how many shapes `fastest` is within 3 % of the best rung, and of how many.

    With `held_out`, of those shapes that the crossovers were not found by.
    """
    used = {(m["crossover"].partition(".")[0], m["case"]) for m in tuning(of)["measured"]}
    lost = [
        row.seconds / study.best_step(row.case).seconds
        for name, study in by_ladder(of).items()
        for row in study.results.rows
        if row.name.startswith(f"{name}/fastest/") and row.seconds == row.seconds
        if not held_out or (name, row.case) not in used
    ]
    return sum(each <= 1.03 for each in lost), len(lost)


TREES = "interleaved_modulo interleaved_strided sequential first_add_on_load".split()


def pipe(*counters: str) -> list[float]:
    """Percent of the shared-memory roof that wavefronts of the reduction's trees use."""
    most = roof("shared_memory", H200) / 128
    found = [row(f"reduction/{tree}", H200) for tree in TREES]
    return [100 * sum(map(r.counter, counters)) / r.seconds / most for r in found]


def floors(least: float, most: float) -> tuple[float, float, float, float]:
    """Of rows that take `least` to `most` seconds: how many, and how far processes were apart.

    That is the percentages within 0.5 and 1 % of their median, and the number beyond 3 %.
    """
    noise = files.read_json(ROOT / f"results/{H200}/noise.json.gz")["rows"].values()
    found = [each["floor"] for each in noise if least <= each["seconds"] < most]
    within = [100 * sum(floor <= limit for floor in found) / len(found) for limit in (5e-3, 1e-2)]
    return len(found), *within, sum(floor > 0.03 for floor in found)


@cache
def profiled() -> dict[str, Row]:
    """The rows that Nsight Compute counted."""
    (found,) = load_results(sorted((ROOT / f"results/{H200}").glob("nsight*.json.gz")))
    return {bare(row.name): row for row in found.rows}


def apart(name: str, counter: str) -> float:
    """Percent by which the program's counter is from Nsight Compute's."""
    theirs = profiled()[name].counter(counter)
    return 100 * abs(rows(H200)[name].counter(counter) - theirs) / theirs


def more_writes(pattern: str) -> dict[str, float]:
    """Bytes that Nsight Compute counts more, of rows that move more than the L2 holds."""
    ours, size = rows(H200), float(results(H200).context["l2_bytes"])
    return {
        name: theirs.dram_write_bytes - ours[name].dram_write_bytes
        for name, theirs in profiled().items()
        if re.search(pattern, name) and name in ours and ours[name].dram_bytes > size
    }


def share_of_writes(pattern: str) -> list[float]:
    """The same in percent of the bytes that Nsight Compute counts."""
    found = more_writes(pattern).items()
    return [100 * more / profiled()[name].dram_write_bytes for name, more in found]


def agreeing(percent: float, of: str = H200) -> tuple[int, int]:
    """At how many rows both of the driver's sources of power agree, and of how many."""
    found = [r.power_over_energy for r in results(of).rows if r.power_over_energy > 0]
    return sum(abs(ratio - 1) <= percent / 100 for ratio in found), len(found)


def cost(*names: str, of: str = H200) -> list[float]:
    """Picojoules of a byte, or of a FLOP, of roofs."""
    found = [roofs.measured(results(of))[name] for name in names]
    return [1e12 * r.joules / (own_speed(r) * r.seconds) for r in found]


VALUES = {
    "row": row,
    "agreeing": agreeing,
    "cost": cost,
    "watts": lambda: float(results().context["idle_watts"]),
    "roof": roof,
    "roof_row": lambda name: roofs.measured(results())[name],
    "clocks": clocks,
    "fastest": fastest,
    "datasheet": roofs.datasheet,
    "abs": abs,
    "max": max,
    "min": min,
    "sorted": sorted,
    "best": best,
    "dearer": dearer,
    "faster": faster,
    "changed_places": changed_places,
    "near_best": near_best,
    "tuned": tuned,
    "pipe": pipe,
    "floors": floors,
    "nsight": lambda name: profiled()[name],
    "apart": apart,
    "more_writes": lambda pattern: more_writes(pattern).values(),
    "share_of_writes": share_of_writes,
    "H100": H100,
    "H200": H200,
}


def rounded(value: float, shown: str) -> str:
    """A value with as many digits as the text shows."""
    if shown in WORDS:
        return shown if WORDS[shown] == round(value) else f"{value:.0f}"
    if " " in shown:
        return f"{round(value, -3 if shown.endswith(' 000') else 0):,.0f}".replace(",", " ")
    return f"{value:.{len(shown.partition('.')[2])}f}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{Path(e['page']).stem}: {e['text']}")
def test_a_number_is_that_of_the_results(entry):
    page, text = entry["page"], entry["text"]
    assert running_text(page).count(text) == 1, f"{page} does not have {text!r} once"
    assert bool(entry["value"]) != bool(entry["source"])
    if not entry["value"]:
        return
    values = eval(f"({entry['value']},)", {"__builtins__": {}, **VALUES})
    shown = re.findall(NUMBER, text)
    assert len(shown) == len(values), f"{page}: {text!r} has {shown}, and the results {values}"
    found = [rounded(value, number) for value, number in zip(values, shown, strict=True)]
    assert shown == found, f"{page}: {text!r} should have {found}: {values}"


@pytest.mark.parametrize("page", PAGES)
def test_no_number_goes_unchecked(page):
    text = running_text(page)
    for entry in ENTRIES:
        if entry["page"] == page:
            text = text.replace(entry["text"], "·")
    left = [text[max(m.start() - 30, 0) : m.end() + 20] for m in MEASURED.finditer(text)]
    assert not left, f"{page}: neither checked nor explained in data/numbers.csv: {left}"
