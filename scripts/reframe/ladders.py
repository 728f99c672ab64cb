# SPDX-License-Identifier: MIT
# ruff: noqa: RUF012 -- ReFrame copies what a test class declares into each of its tests
"""Every ladder on every partition of a cluster, as ReFrame tests.

    reframe -C scripts/reframe/settings.py -c scripts/reframe/ladders.py --run --performance-report

A partition with the feature `gpu` measures; one without counts on an emulated GPU. Each ladder is
one job. Variables, set as `-S Program.program=PATH` (the first three) or `-S LadderTest.rows=...`:

program         a program built before, for every partition; nothing is compiled then
cmake_options   further arguments of CMake, separated by commas
emulate         count on an emulated GPU where there is a real one, too
rows            only rows that this expression is found in, such as `/padded/`; each ladder must
                have some, so choose ladders too: `-n 'LadderTest.*%ladder=transpose'`
device          the GPU of the node, as in CUDA_VISIBLE_DEVICES: the job gets all of the partition's
                `devices`; `-P LadderTest.device=0,1` measures two of them, a job each
collect         where results gather (default: study/results), and ladder's table, plot, compare
                and report find them: <system>-<partition>-<gpu>/<node>[-gpu<device>]/<ladder>.json
executable_opts further flags of the program, separated by commas

A partition's `extras` may hold `reference`, results of its GPU that were measured before, and
`tolerance`, by how much a figure may be lower: a fraction, 0.05 unless given.
"""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from ladder.analysis.study import Study, own_quantity, own_speed, studies
from ladder.io import files
from ladder.io.results import Results, load_results
from ladder.model import text
from ladder.model.errors import LadderError
from reframe.core.builtins import (
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import PerformanceError, SanityError

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = (ROOT / "benchmarks/model/catalogue.hpp").read_text(encoding="utf-8")
TOLERANCE = 0.05
UNITS = {  # of figures, fixed so that those of years can be set side by side
    "bytes": ("bandwidth", 1e9, "GB/s"),
    "flops": ("throughput", 1e9, "GFLOP/s"),
    "atomics": ("atomics", 1e9, "G_atomics/s"),
}


class Program(rfm.CompileOnlyRegressionTest):
    """The benchmark program, built once a partition and environment, or given."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    program = variable(str, value="")
    cmake_options = variable(typ.List[str], value=[])
    emulate = variable(bool, value=False)
    sourcesdir = None
    # On a node of the partition, so that the build is for the GPU that it has. Where nodes have no
    # compiler: -S build_locally=true -S cmake_options=-DCMAKE_CUDA_ARCHITECTURES=90a.
    build_locally = False
    build_time_limit = "1h"

    @run_after("init")
    def wait_for_no_node(self):
        """Look for a given program from here: there is nothing to build on a node."""
        if self.program:
            self.program = str(Path(self.program).expanduser().resolve())
            self.build_locally = True

    @run_after("setup")
    def ask_for_a_gpu(self):
        """CMake builds for the GPU that it sees; builds have no `num_gpus_per_node`."""
        if "gpu" in self.current_partition.features:
            self.extra_resources = {"_rfm_gpu": {"num_gpus_per_node": 1}}

    @run_before("compile")
    def choose(self):
        """Build ladder_bench, or the emulated program where there is no GPU; or nothing."""
        if self.program:
            self.build_system = "CustomBuild"
            self.build_system.commands = [f"test -x {shlex.quote(self.program)}"]
            return
        emulated = self.emulate or "gpu" not in self.current_partition.features
        target, where = "ladder_bench", ""
        if emulated:
            target, where = "ladder_bench_emulated", "benchmarks/emulated/"
        self.build_system = "CMake"
        self.build_system.configuredir = shlex.quote(str(ROOT))
        self.build_system.builddir = "build"
        self.build_system.max_concurrency = None
        self.build_system.config_opts = [
            "-G Ninja",  # as many compilers as there are cores; make would start them all at once
            "-DCMAKE_BUILD_TYPE=Release",
            "-DLADDERS_TESTS=OFF",
            f"-DLADDERS_CUDA={'OFF' if emulated else 'ON'}",
            f"-DLADDERS_EMULATED={'ON' if emulated else 'OFF'}",
            *self.cmake_options,
        ]
        self.build_system.build_opts = [target]
        self.program = str(Path(self.stagedir) / "build" / where / target)

    @sanity_function
    def is_built(self):
        """Fail where there is no program."""
        return sn.path_isfile(self.program)


@rfm.simple_test
class LadderTest(rfm.RunOnlyRegressionTest):
    """One ladder: its rows verified and measured, and how fast its best rung is."""

    descr = "A ladder of CUDA kernels, verified and measured"
    ladder = parameter(re.findall(r"^ *X\((\w+)\)", CATALOGUE, re.MULTILINE))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    build = fixture(Program, scope="environment")
    rows = variable(str, value="")
    device = variable(str, value="")
    collect = variable(str, value=str(ROOT / "study/results"))
    best_rung = variable(str, value="", loggable=True)
    exclusive_access = True  # other jobs of the node would be in the times
    time_limit = "1h"
    sourcesdir = None
    keep_files = ["results.json", "node.txt"]

    @run_after("setup")
    def ask_for_a_gpu(self):
        """Ask the scheduler for any one; or where one is named, for all of the node's."""
        partition = self.current_partition
        if "gpu" in partition.features:
            there = sum(d.num_devices for d in partition.devices if d.device_type == "gpu")
            self.num_gpus_per_node = there if self.device and there else 1
        if self.device:
            self.env_vars["CUDA_VISIBLE_DEVICES"] = self.device

    @run_before("run")
    def name_the_program(self):
        """Run the rows of one ladder; the node is asked, since not all schedulers tell."""
        self.executable = shlex.quote(self.build.program)
        only = f"(/.*)?({self.rows})" if self.rows else "/"
        self.executable_opts = [
            shlex.quote(f"--benchmark_filter=^{self.ladder}{only}"),
            "--benchmark_out=results.json",
            *self.executable_opts,
        ]
        self.prerun_cmds = ['echo "${SLURMD_NODENAME:-$(uname -n)}" >node.txt']

    @run_before("sanity")
    def gather(self):
        """Keep what was measured, whatever the verdict; earlier results stay under their date."""
        stage = Path(self.stagedir)
        try:
            self.results = load_results([stage / "results.json"])[0]
        except LadderError as error:
            self.results = error
            return
        node = re.sub(r"[^\w.-]", "-", (stage / "node.txt").read_text(encoding="utf-8").strip())
        partition = self.current_partition.fullname.replace(":", "-")
        folder = Path(self.collect) / f"{partition}-{slug(self.results)}"
        folder /= f"{node}-gpu{self.device}" if self.device else node
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"{self.ladder}.json"
        if kept.exists():
            date = datetime.fromtimestamp(kept.stat().st_mtime, UTC)
            kept.rename(folder / f"{self.ladder}-{date:%Y%m%dT%H%M%S%fZ}.json.old")
        files.write(kept, (stage / "results.json").read_bytes())

    @sanity_function
    def rows_are_right(self):
        """Fail unless the file is whole, a row of it has results, and none failed."""
        if isinstance(self.results, LadderError):
            said = Path(self.stagedir, self.stderr.evaluate())
            told = text.last_line(files.read_text(said)) if said.exists() else ""
            raise SanityError(f"{self.results}; {told or 'it said nothing'}")
        rows = self.results.rows
        failed = [f"{row.name}: {row.reason}" for row in self.results.with_status("error")]
        if failed:
            told = text.first_of(failed, 3, "; ")
            raise SanityError(f"{len(failed)} of {len(rows)} rows failed: {told}")
        return sn.assert_true(self.results.with_status("ok"), "every row was skipped")

    @run_before("performance")
    def take_figures(self):
        """Report the best rung at the headline; hold it against the partition's reference."""
        if isinstance(self.results, LadderError):  # of a dry run, or with --skip-sanity-check
            return
        found = {"rows": (len(self.results.with_status("ok")), "rows")}
        wanted = {}
        for study in studies(self.results) if self.results.source == "timed" else ():
            found |= figures(study, study.headline)
            best = study.best_step(study.headline)
            self.best_rung = best.rung if best else ""
            extras = self.current_partition.extras
            if reference := extras.get("reference"):
                earlier = load_reference(ROOT / reference, self.results, study.ladder.name)
                wanted = figures(earlier, study.headline) if earlier else {}
        tolerance = self.current_partition.extras.get("tolerance", TOLERANCE)
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(float(value)), unit)
            for name, (value, unit) in found.items()
        }
        self.reference = {
            self.current_partition.fullname: {
                name: (value, -tolerance, None, unit)
                for name, (value, unit) in wanted.items()
                if name in found
            }
        }


def figures(study: Study, case: str) -> dict[str, tuple[float, str]]:
    """Return (value, unit) by name: of the best rung at `case`, or of each roof.

    Names are `bandwidth` in GB/s or `throughput` in GFLOP/s, and `percent_of_ceiling` in %; of
    roofs those of their rungs. Empty where nothing has a speed there.
    """
    if study.ladder.is_roof:
        found = {}
        for rung in study.rungs:
            if row := study.measured(rung, case):
                _, divisor, unit = UNITS[own_quantity(row)]
                found[rung.name] = (own_speed(row) / divisor, unit)
        return found
    if (row := study.best_step(case)) is None:
        return {}
    name, divisor, unit = UNITS[study.ladder.quantity]
    found = {name: (study.speed(row) / divisor, unit)}
    if row.percent_of_ceiling > 0:
        found["percent_of_ceiling"] = (row.percent_of_ceiling, "%")
    return found


def load_reference(path: Path, results: Results, ladder: str) -> Study | None:
    """Return a ladder as it was measured before, None if it was not.

    Raises PerformanceError where `path` is unreadable or of other GPUs or another cache mode.
    """
    try:
        known = [r for r in load_results([path]) if r.source == "timed"]
    except LadderError as error:
        raise PerformanceError(f"reference: {error}") from error
    alike = [r for r in known if (r.gpu, r.cache_mode) == (results.gpu, results.cache_mode)]
    if not alike:
        raise PerformanceError(
            f"reference: {path}: not of {results.gpu}, {results.cache_mode} cache"
        )
    found = [study for r in alike for study in studies(r) if study.ladder.name == ladder]
    return found[0] if found else None


def slug(results: Results) -> str:
    """Name a GPU as in results/: `nvidia-h200`, `emulated-h200`."""
    name = results.gpu or "unknown"
    if results.source == "emulated":
        name = f"emulated {results.context.get('modelled_gpu', name)}"
    return text.slug(name)
