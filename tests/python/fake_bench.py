# SPDX-License-Identifier: MIT
"""Stands in for ladder_bench: FOLDER [FLAGS...], with FOLDER/plan.json saying how its rows end.

Of that plan, `rows` maps names to what happens there (see `happen`), `context` overrides what the
file says of the machine, and `start` is what happens before the first row. A process adds its flags
to FOLDER/starts and the names of its rows to FOLDER/rows, as they begin. With
`counted` rows are as the emulator counts them. It is started a thousand times, and so loads no
module that takes as long as Python itself, as json, re and signal do.
"""

import os
import sys
import time
from _json import encode_basestring_ascii as quoted

SIGSEGV = 11


def rung(name, role="step", *ceilings, **more):
    return {"name": name, "role": role, "ceilings": ceilings, **more}


def ladder(name, quantity, *rungs):
    return {
        "name": name,
        "title": name,
        "quantity": quantity,
        "axes": [{"name": "n"}],
        "rungs": rungs,
    }


BOTH = (
    {"rung": "roof/fma", "products": 1},
    {"rung": "roof/copy", "products": 1, "quantity": "bytes"},
)
COPY = {"rung": "turn/copy", "products": 1}
LADDERS = [
    ladder("roof", "bytes", rung("copy", "ceiling"), rung("fma", "ceiling")),
    ladder(
        "mul",
        "flops",
        rung("naive", "step", *BOTH),
        rung("tiled", "step", *BOTH, builds_on="naive"),
        rung("split", "step", {"rung": "roof/fma", "products": 3}, builds_on="tiled"),
        rung("tensor", precision="tf32"),
    ),
    ladder("turn", "bytes", rung("copy", "ceiling", COPY), rung("tile", "step", COPY)),
]
SIZES = {"full": (64, 1024, 4096), "small": (2,)}


def rows(cases, shape=""):
    """Of all ladders; with a shape as "mul:n=5" of that one alone, and of the roofs if counted."""
    at = dict.fromkeys((of["name"] for of in LADDERS), SIZES[cases])
    if shape:
        ladder, n = shape.split(":n=")
        roofs = {"roof": SIZES[cases]} if "--hardware_counters" in flags else {}
        at = roofs | {ladder: (int(n),)}
    return {
        f"{of['name']}/{rung['name']}/n:{n}/manual_time": (of, rung, n)
        for of in LADDERS
        for n in at.get(of["name"], ())
        for rung in of["rungs"]
    }


def speed(of, rung, n):
    """FLOP/s, bytes/s and FLOPs a byte; the same in every process."""
    share = {"roof": 1.0, "turn": 0.9}.get(of["name"], 0.5)
    bandwidth = 4e12 * share * (1 - 1 / n) * (1 - 0.01 * len(rung["name"]))
    intensity = n / 50
    if of["name"] == "mul":
        return bandwidth * intensity, bandwidth, intensity
    return (6e13 * (1 - 1 / n), 0, 0) if rung["name"] == "fma" else (0, bandwidth, 0)


def percent_of_ceiling(of, rung, n):
    """As the program does: from the ceilings, which happen here if they have not yet."""

    def best(path, which):
        own = path.startswith(of["name"] + "/")
        found = [
            (name, at)
            for name, at in {
                **rows("full"),
                **(rows("small") if own else {}),
                **rows("full", values.get("--shape", "")),
            }.items()
            if name.startswith(path + "/") and (not own or at[2] == n)
        ]
        for name, _ in found:
            if plan["rows"].get(name, "ok") in ("crash", "wait"):
                happen(name)
        return max(speed(*at)[which] for _, at in found)

    own, bandwidth, intensity = speed(of, rung, n)
    own = bandwidth if of["quantity"] == "bytes" else own
    found = []
    for ceiling in rung["ceilings"]:
        quantity = ceiling.get("quantity", of["quantity"])
        factor = intensity if quantity != of["quantity"] else 1
        found.append(factor * best(ceiling["rung"], quantity == "bytes") / ceiling["products"])
    return 100 * own / min(found) if found else None


def happen(name):
    """Return why a row fails, None if it does not; or end the process, or never return."""
    what = plan["rows"].get(name, "ok")
    if what == "once":  # a crash, but not when tried again
        with open(f"{folder}/rows") as log:
            if log.read().split().count(name) > 1:
                return None
        sample(name)  # of its first repetition
        sample(name, torn=True)
        what = "crash"
    match what:
        case "crash":
            os.kill(os.getpid(), SIGSEGV)
        case "abort":
            print("terminate called", file=sys.stderr, flush=True)
            os.abort()
        case "exit":
            sys.exit("it is all over\n")
        case "usage":
            print(f"{plan.get('name', 'fake_bench')}: no CUDA device 0", file=sys.stderr)
            sys.exit(2)
        case "disk":
            sys.exit("out.json could not be written: is the disk full?\n")
        case "leave":
            sys.exit(0)
        case "sticky":
            broken.append("CUDA: an illegal memory access")
        case "wait":
            add("waiting", str(os.getpid()))
            while os.path.exists(f"{folder}/waiting"):
                time.sleep(0.01)
        case "wrong":
            return "wrong result"
        case "skip":
            return "skipped: does not fit"
    return broken[0] if broken else None


def dumps(value):
    """Write JSON."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{quoted(k)}: {dumps(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumps, value)) + "]"
    names = {True: "true", False: "false", None: "null"}
    return names[value] if value is None or isinstance(value, bool) else repr(value)


def result(place, name, at):
    """Return a row as libbenchmark 1.7.1 writes it."""
    why = happen(name)
    of, rung, n = at
    row = {"name": name, "family_index": place, "run_name": name, "run_type": "iteration"}
    row |= {"repetitions": 1, "repetition_index": 0, "threads": 1}
    if why:
        row |= {"error_occurred": True, "error_message": why}
    row |= {"iterations": 1, "real_time": 0.0 if why else 10.0, "cpu_time": 0.0, "time_unit": "us"}
    if why:
        return row
    rates = zip(
        ("flops_per_second", "bytes_per_second", "arithmetic_intensity"),
        speed(of, rung, n),
        strict=True,
    )
    row |= {key: value for key, value in rates if value}
    if "--ceilings=false" not in flags and (percent := percent_of_ceiling(of, rung, n)):
        row["percent_of_ceiling"] = percent
    if plan["rows"].get(name) == "hot":
        row["clock_held_by_heat"] = 0.98
    if "counted" in plan:  # as the emulator does
        row["grid_blocks"] = 1.0
        details.append({"row": name.removesuffix("/manual_time")})
    return row


def write(out, context, chosen, what="", **read):
    """Write row by row what gets its name when it is whole: a pass, of the times or of `what`."""
    with open(f"{out}.partial", "w") as file:
        file.write('{"context": ' + dumps(context) + ',\n"benchmarks": [')
        file.flush()
        for place, (name, at) in enumerate(chosen.items()):
            if what:
                read_more(timed[name], what, read)
            else:
                add("rows", name)
                timed[name] = result(place, name, at)
                if "error_message" not in timed[name]:
                    sample(name)
            row = timed[name]
            file.write("," * (place > 0) + "\n" + dumps(row))
            file.flush()
        file.write("\n  ]\n}\n")
    os.rename(f"{out}.partial", out)


def read_more(row, what, read):
    """Add to a row that was timed what another pass reads, or why it cannot."""
    of = f"{what} {row['name']}"
    if "error_message" in row:
        return
    if dead or broken:
        row.setdefault("incomplete", 2.0)
    elif (how := plan["rows"].get(of)) in ("lack", "die"):
        row["incomplete"] = 1.0
        (dead if how == "die" else lacking).append(f"{row['name']}: no {what}: refused")
    else:
        happen(of)
        row |= read


def sample(name, *, torn=False):
    """Append the samples of a row, told apart by how many processes were started before."""
    if not (path := values.get("--samples_out")):
        return
    with open(f"{folder}/starts") as log:
        line = {"name": name, "nanoseconds": [9000.0 + len(log.readlines()), 11000.0]}
    text = dumps(line).replace("\n", "").encode()
    with open(path, "a+b") as file:
        file.seek(max(0, file.tell() - 1))
        begin = b"\n" if file.read() not in (b"", b"\n") else b""
        file.write(begin + (text[:20] if torn else text + b"\n"))


def add(log, line):
    with open(f"{folder}/{log}", "a") as file:
        file.write(line + "\n")


folder, flags = sys.argv[1], sys.argv[2:]
values = dict(flag.partition("=")[::2] for flag in flags)
with open(f"{folder}/plan.json") as file:
    plan = eval(file.read(), {"true": True, "false": False, "null": None})  # as json would
broken: list[str] = []  # by a row that was timed: those after it fail
dead: list[str] = []  # by a row of a later pass: those after it are left out
lacking: list[str] = []
timed: dict[str, dict] = {}
details: list[dict[str, str]] = []  # of each row
if "--help" in flags:
    print("  --cases=full|small" * plan.get("cases", True))
    print("  --ceilings=false" * plan.get("ceilings", True))
    print("  --plans" * plan.get("plans", True))
    print("  --samples_out=FILE" * plan.get("samples", True))
    sys.exit(0)
if "--bogus" in flags:
    print("fake: unknown flag --bogus", file=sys.stderr)
    sys.exit(2)
chosen = rows(values.get("--cases", "full"), values.get("--shape", ""))
pattern = values.get("--benchmark_filter", ".")
if pattern[:2] == "^(" and pattern[-2:] == ")$":  # whole names, as a run gives them
    chosen = {name: at for name, at in chosen.items() if name in pattern[2:-2].split("|")}
elif pattern != ".":
    import re

    chosen = {name: at for name, at in chosen.items() if re.search(pattern, name)}
if "--benchmark_list_tests" in flags:
    print("".join(name + "\n" for name in chosen), end="")
    sys.exit(0 if chosen else "Failed to match any benchmarks against regex\n")

if "--plans" in flags:
    add("plans", " ".join(flags))
    print("fake: a line\nemulated: note: mul/n:77 takes long", file=sys.stderr)
    sys.exit(0)

shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
add("starts", " ".join([f"GPU={shown}", *flags]))
add("small_kernels", os.environ.get("LADDER_SMALL_KERNEL_NANOSECONDS", "any"))
plan["rows"][""] = plan.get("start", "ok")
happen("")
context = {
    "gpu_name": "NVIDIA H200",
    "gpu_uuid": shown,
    "git_commit": "abc",
    "cache_mode": "cold",
    "build_type": "Release",
    "emulated": "false",
    "ladders": dumps(LADDERS),
    **plan.get("context", {}),
}
out = values["--benchmark_out"]
if "garbage" in plan:
    with open(out, "w") as file:
        file.write(plan["garbage"])
    sys.exit(0)
write(out, context, chosen)
if "--energy" in values:
    context["energy_source"] = source = plan.get("energy", "fake")
    write(out, context, chosen, "energy", **({} if source[:4] == "none" else {"joules": 3.0}))
if "--hardware_counters" in flags:
    happen("between")
    context["hardware_counters"] = "fake"
    write(out, context, chosen, "count", dram_bytes=7.0)
if "--details_out" in values:
    with open(values["--details_out"], "w") as file:
        file.write(dumps({"lines": details, "occupancy": details}))
if told := [*dead, *lacking]:
    sys.exit(told[0].replace("/manual_time", ""))
