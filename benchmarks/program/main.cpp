// SPDX-License-Identifier: MIT
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "model/shapes.hpp"
#include "program/context.hpp"
#include "program/google_benchmark.hpp"
#include "program/json.hpp"
#include "program/registration.hpp"
#include "program/tuning.hpp"

namespace {

using namespace ladders;

/// Opens the output file that `flag` names; the stream is closed if `file` is empty. Writes to the
/// partial file, which publish() renames, or appends lines to `file` itself. A process that was
/// killed may have left half a line there, which is then ended first. Throws UsageError.
std::ofstream open_output(const std::string& flag, const std::string& file, bool append = false) {
  std::ofstream out;
  if (file.empty()) return out;
  char last = '\n';
  if (std::ifstream before(file, std::ios::ate | std::ios::binary); append && before.tellg() > 0)
    before.seekg(-1, std::ios::end).get(last);
  append ? out.open(file, std::ios::app) : out.open(partial(file));
  if (last != '\n') out << '\n';
  if (!out) throw UsageError(flag + "=" + file + ": cannot be written");
  return out;
}

/// Renames the partial file of `name`, if it is complete. Google Benchmark does not notice a full
/// disk, so this looks for the closing brace. Throws std::runtime_error.
void publish(const std::string& name, bool written = true) {
  std::ifstream file(partial(name), std::ios::ate | std::ios::binary);
  char end = 0;
  for (auto at = file.tellg(); at > 0 && (end == 0 || end == '\n');) file.seekg(at -= 1).get(end);
  if (!written || end != '}')
    throw std::runtime_error(name + " could not be written: is the disk full?");
  std::filesystem::rename(partial(name), name);
}

/// Writes the details of all rows as a JSON object, and closes `out`.
void write_details(const Outcome& outcome, std::ofstream& out) {
  std::vector<std::string> lines, occupancy;
  for (const auto& [row, details] : outcome.details) {
    lines.insert(lines.end(), details.lines.begin(), details.lines.end());
    if (!details.occupancy.empty()) occupancy.push_back(details.occupancy);
  }
  const auto on_new_line = [](const std::string& json) { return "\n" + json; };
  out << "{\"lines\":" << array(lines, on_new_line)
      << ",\n\"occupancy\":" << array(occupancy, on_new_line) << "}\n";
  out.close();
}

/// Free device memory in bytes. On the emulator that is host memory.
size_t free_memory() {
  if (!kEmulated) {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
  std::ifstream file("/proc/meminfo");
  for (std::string name, kilobytes; file >> name >> kilobytes; file.ignore(80, '\n'))
    if (name == "MemAvailable:") return std::stoull(kilobytes) << 10;
  return std::numeric_limits<size_t>::max();
}

/// A reporter that prints nothing.
struct NullReporter : benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

/// Prints the share of each activity in the wall time (in seconds): what the harness itself costs.
void print_time_shares(const Spent& spent, int rows, double wall) {
  const auto& [filling, verifying, measuring, energy, counting] = spent;
  const double percent = 100 / wall,
               rest = wall - filling - verifying - measuring - energy - counting;
  std::fprintf(stderr,
               "%d rows in %.0f s: %.0f %% measuring, %.0f %% verifying, %.0f %% filling inputs, "
               "%.0f %% energy, %.0f %% hardware counters, %.0f %% the rest\n",
               rows, wall, measuring * percent, verifying * percent, filling * percent,
               energy * percent, counting * percent, rest * percent);
}

/// Returns the exit status: 1 if a row failed, and 2 if no row matches the filter. (Google
/// Benchmark itself exits with 0.) Throws UsageError, CudaError, std::runtime_error.
int run(Options& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<char*> argv;
  for (std::string& argument : options.benchmark_arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  benchmark::SetDefaultTimeUnit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv.data(), print_help);
  // Only the name, since a path in the results would tell about the machine and its user.
  benchmark::BenchmarkReporter::Context::executable_name = program_name();
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return 2;

  configure(options);
  Outcome outcome;
  std::unique_ptr<Study> study;
  register_rows(options, [&]() -> Study& { return *study; }, outcome);
  if (options.list) return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 2;
  open_output("--benchmark_out", options.result_file);
  Tuning tuning;
  if (!options.tuning_file.empty()) tuning = read_tuning(options.tuning_file);
  std::ofstream details = open_output("--details_out", options.details_file);
  if (options.device >= Device::count())
    throw UsageError("no CUDA device " + std::to_string(options.device) + " (there are " +
                     std::to_string(Device::count()) + ")");
  outcome.samples = open_output("--samples_out", options.samples_file, true);
  study = Study::open(options.device, options.sampling);
  if (!options.shapes.empty() && !options.plans)
    if (const std::string why =
            too_large(options.ladders, options.cases, study->device(), free_memory());
        !why.empty())
      throw UsageError("--shape: " + why);
  // For named shapes also under --plans: a study prints it before it runs them.
  if (kEmulated && (!options.shapes.empty() || (options.cases != Shapes::small && !options.plans)))
    if (const std::string why = takes_long(options.ladders, options.cases, study->device());
        !why.empty())
      std::fprintf(stderr, "emulated: note: %s\n", why.c_str());
  // `ladder tune` measures with the built-in values, whatever was tuned before.
  if (options.tuning_file.empty() && !options.tune) tuning = tuning_of(study->device());
  if (!options.tuning_file.empty())
    for (const std::string& note : unexpected(tuning, study->device()))
      std::fprintf(stderr, "--tuning=%s: note: %s\n", options.tuning_file.c_str(), note.c_str());
  study->set_crossovers(tuning.values);
  benchmark::AddCustomContext("tuning", tuning.source);
  add_context(*study, options);
  const bool console = options.format == "console";
  if (console) std::fprintf(stderr, "%s\n", describe(study->device()).c_str());

  // Null stands for Google Benchmark's own.
  std::unique_ptr<benchmark::BenchmarkReporter> display_reporter;
  if (console)
    display_reporter = console_reporter(
        [&](const std::string& row) { return options.per_line ? outcome.details[row].text : ""; });
  const auto run_rows = [&](benchmark::BenchmarkReporter* reporter) {
    const size_t matched = benchmark::RunSpecifiedBenchmarks(reporter);
    if (matched > 0 && !options.result_file.empty()) publish(options.result_file);
    return matched;  // if 0, Google Benchmark has reported that
  };
  std::vector<Outcome::Pass> passes = {Outcome::timing};
  if (options.sampling.energy && !options.sampling.profile) passes.push_back(Outcome::energy);
  if (options.sampling.hardware_counters && !options.sampling.profile)
    passes.push_back(Outcome::counting);
  NullReporter null_reporter;
  for (const Outcome::Pass pass : passes) {
    outcome.pass = pass;
    outcome.measured = outcome.skipped = outcome.failed = 0;
    outcome.repeats = false;
    if (pass != Outcome::timing) {
      const auto sources = pass == Outcome::energy
                               ? study->energy_source()
                               : std::map<std::string, std::string>{
                                     {"hardware_counters", study->hardware_counters()}};
      for (const auto& [name, value] : sources) {
        benchmark::AddCustomContext(name, value);
        if (!value.starts_with("none")) continue;
        outcome.repeats = true;
        std::fprintf(stderr, "%s: %s\n", name.c_str(), value.c_str());
      }
      if (console && !outcome.repeats)
        std::fprintf(
            stderr, "All rows are timed; %s.\n",
            pass == Outcome::counting ? "each now runs again for its hardware counters"
            : options.energy_of_all
                ? "each now runs again for its energy"
                : "those at headline shapes or under a power limit now run again for their energy");
    }
    // Each pass publishes all results so far, so that no failure of a later pass loses them.
    const bool last = pass == passes.back();
    if (run_rows(console || last ? display_reporter.get() : &null_reporter) == 0) return 2;
    outcome.look_at_device();
  }
  const double wall = seconds_since(start);
  if (outcome.samples.is_open() && !outcome.samples.flush())
    throw std::runtime_error(options.samples_file + " could not be written: is the disk full?");
  if (details.is_open()) {
    write_details(outcome, details);
    publish(options.details_file, details.good());
  }
  if (outcome.measured > 0 && !kEmulated && !options.sampling.profile)
    print_time_shares(study->spent(), outcome.measured, wall);
  const int failed = outcome.failed + int(outcome.lacking.size());
  if (failed == 0) return 0;
  std::string first;
  if (!outcome.lacking.empty())
    first = ": " + outcome.lacking.begin()->first + ": " + outcome.lacking.begin()->second;
  std::fprintf(stderr, "%s: %d of %d rows failed%s\n", program_name(), failed,
               outcome.failed + outcome.measured, first.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int status = 1;
  try {
    options = parse(argc, argv);
    status = run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program_name(), error.what());
    if (dynamic_cast<const UsageError*>(&error)) status = 2;
  }
  std::error_code ignored;
  for (const std::string& file : {options.result_file, options.details_file})
    if (!file.empty()) std::filesystem::remove(partial(file), ignored);
  return status;
}
