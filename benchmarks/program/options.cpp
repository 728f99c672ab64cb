// SPDX-License-Identifier: MIT
#include "program/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <regex>

#include "model/shapes.hpp"
#include "program/context.hpp"
#include "program/google_benchmark.hpp"
#include "program/tuning.hpp"

namespace ladders {
namespace {

constexpr char kSmallKernelVariable[] = "LADDER_SMALL_KERNEL_NANOSECONDS";

// A flag as it was given: "--name" and its value.
struct Value {
  std::string name, text;

  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(name + "=" + text + ": " + why);
  }

  bool on() const { return text != "false" && text != "0" && text != "no" && text != "off"; }

  template <class T>
  T number() const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= T{}) ||
        value > std::numeric_limits<T>::max())  // neither NaN nor infinity
      refuse("not a number");
    return value;
  }

  // The library's CSV writer aborts where one row lacks a counter that another has.
  const std::string& format() const {
    if (text == "csv") refuse("write JSON, and let `ladder table --format csv` read it");
    if (text != "console" && text != "json") refuse("not console or json");
    return text;
  }
};

// "2", "0.5s" or "100x": a time on the device, or a number of samples.
void set_min_time(Sampling& sampling, Value value) {
  const char unit = value.text.size() > 1 ? value.text.back() : ' ';
  if (unit == 'x' || unit == 's') value.text.pop_back();
  if (unit != 'x')
    sampling.device_seconds = value.number<double>();
  else if (sampling.exactly = value.number<int>(); sampling.exactly == 0)
    throw UsageError(value.name + "=0x: no samples");
}

// The program that has a flag; or the library, which sees it too unless it is `taken`.
enum class Whose { both, timing, counting, library, taken };

// A flag: parsed, checked and explained by its row.
struct Flag {
  std::string name, values;  // without values it is a switch: --name, --name=false
  std::string help;          // empty where Google Benchmark has its own
  Whose whose;
  std::function<void(Options&, const Value&)> set;
};

const std::vector<Flag>& flags() {
  using O = Options;
  using V = const Value;
  using enum Whose;
  static const std::vector<Flag> all = {
      {"cases", "full|small",
       "full: the shapes measured on GPUs; small: those that an emulator\ncan run (" +
           std::string(kEmulated ? "small" : "full") + ")",
       both, [](O& o, V& v) { o.cases = v.text == "full" ? Shapes::measured : Shapes::small; }},
      {"shape", "LADDER:AXIS=N,...",
       "measure only this ladder, at these shapes:\n--shape=sgemm:m=n=k=1024..8192*2; values are "
       "ranges, or lists of numbers\nor labels; axes left out have the headline's value; may be "
       "repeated",
       both, [](O& o, V& v) { o.shapes.push_back(v.text); }},
      {"tuning", "FILE",
       "crossovers, as `ladder tune` wrote them (default: the built-in file\nof this GPU or of the "
       "nearest architecture)",
       both, [](O& o, V& v) { o.tuning_file = v.text; }},
      {"tune", "", "measure both sides of all crossovers, as `ladder tune` does", timing,
       [](O& o, V& v) { o.tune = v.on(); }},
      {"gpu", "NAME",
       "the GPU to emulate (h200): t4, a100, a10, rtx3090, l4, l40s,\nrtx4090, h100, h200, b200, "
       "rtx5090",
       counting, [](O& o, V& v) { o.gpu = v.text; }},
      {"per_line", "", "print the requests of each source line after each row", counting,
       [](O& o, V& v) { o.per_line = v.on(); }},
      {"plans", "", "run nothing: occupancy of each row, and in JSON its grid and registers",
       counting, [](O& o, V& v) { o.plans = v.on(); }},
      {"details_out", "FILE",
       "write the requests of each source line, and occupancy curves, as JSON", counting,
       [](O& o, V& v) { o.details_file = v.text; }},
      {"check", "", "look for races, unwritten memory, accesses out of bounds", counting,
       [](O& o, V& v) { o.check = v.on(); }},
      {"order", "forward|reverse|random",
       "the order of threads where CUDA leaves it open (forward)", counting,
       [](O& o, V& v) { o.order = v.text; }},
      {"workers", "N", "host threads (0: one per core)", counting,
       [](O& o, V& v) { o.workers = v.number<int>(); }},
      {"device", "N", "the GPU to measure (0)", both,
       [](O& o, V& v) { o.device = v.number<int>(); }},
      {"cache", "cold|warm", "L2 flushed before each launch, or launches back to back (cold)",
       timing, [](O& o, V& v) { o.sampling.cold = v.text == "cold"; }},
      {"noise", "X", "relative standard error of the median to reach (0.001)", timing,
       [](O& o, V& v) { o.sampling.noise = v.number<double>(); }},
      {"wall_limit", "SECONDS",
       "stop sampling a row after this time (0.5, or 10 times the time that\n--benchmark_min_time "
       "asks "
       "for, if that is more)",
       timing, [](O& o, V& v) { o.wall_limit = v.number<double>(); }},
      {"ceilings", "", "with =false, measure no ceilings: rows have no percent_of_ceiling", timing,
       [](O& o, V& v) { o.sampling.ceilings = v.on(); }},
      {"hardware_counters", "",
       "after all rows are timed, run each again for its hardware counters\n(CUPTI)", timing,
       [](O& o, V& v) { o.sampling.hardware_counters = v.on(); }},
      {"energy", "headline|all",
       "after all rows are timed: joules and watts of those at the headline\nshapes (or those of "
       "--shape) or under a power limit, or of all,\nby NVML (1 to 2 s per row)",
       timing,
       [](O& o, V& v) {
         o.sampling.energy = true;
         o.energy_of_all = v.text == "all";
       }},
      {"settle", "SECONDS",
       "if the clock is lowered, wait up to this long until it is steady, then\n"
       "sample up to three times as long (10, or a third of --wall_limit if less)",
       timing, [](O& o, V& v) { o.sampling.settle_seconds = v.number<double>(); }},
      {"samples_out", "FILE", "append the samples of each row, in ns, as a line of JSON", timing,
       [](O& o, V& v) { o.samples_file = v.text; }},
      {"profile", "",
       "no times: verify each kernel's row, then launch it once between\ncudaProfilerStart and "
       "cudaProfilerStop",
       timing, [](O& o, V& v) { o.sampling.profile = v.on(); }},
      {"benchmark_min_time", "TIME", "", taken, [](O& o, V& v) { set_min_time(o.sampling, v); }},
      // The library's own warm-up would sample the whole row each time.
      {"benchmark_min_warmup_time", "SECONDS", "", taken,
       [](O& o, V& v) { o.sampling.warmup_seconds = v.number<double>(); }},
      {"benchmark_out", "FILE", "", taken, [](O& o, V& v) { o.result_file = v.text; }},
      {"benchmark_list_tests", "", "", library, [](O& o, V& v) { o.list = v.on(); }},
      {"benchmark_dry_run", "", "", library,
       [](O& o, V& v) {
         if (v.on()) o.sampling.exactly = 1;
       }},
      {"benchmark_format", "FORMAT", "", library, [](O& o, V& v) { o.format = v.format(); }},
      {"benchmark_out_format", "FORMAT", "", library, [](O&, V& v) { v.format(); }},
  };
  return all;
}

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  auto& pass = options.benchmark_arguments;
  pass.assign(argv, argv + 1);
  if (const char* text = std::getenv(kSmallKernelVariable); text && *text && !kEmulated)
    options.sampling.small_kernel_seconds =
        1e-9 * Value{kSmallKernelVariable, text}.number<double>();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto flag =
        std::ranges::find_if(flags(), [&](const Flag& f) { return "--" + f.name == name; });
    if (flag == flags().end()) {
      pass.push_back(argument);
      continue;
    }
    if (flag->whose == Whose::timing && kEmulated)
      throw UsageError(argument + ": nothing is timed here, only ladder_bench takes " + name);
    if (flag->whose == Whose::counting && !kEmulated)
      throw UsageError(argument + ": only ladder_bench_emulated takes " + name);
    const std::string text = equals == std::string::npos ? "" : argument.substr(equals + 1);
    const bool on = flag->values.empty() && equals == std::string::npos;
    if (text.empty() && !on) throw UsageError(argument + " needs a value: " + name + "=...");
    const Value value{name, on ? "true" : text};
    const std::string& choices = flag->values;
    if (choices.find('|') != choices.npos && !std::regex_match(text, std::regex(choices)))
      value.refuse("not " + std::regex_replace(choices, std::regex("[|]"), " or "));
    flag->set(options, value);
    if (flag->whose == Whose::library) pass.push_back(argument);
  }
  check_catalogue(options.ladders);
  check_targets(options.ladders);
  if (!options.shapes.empty()) try {
      options.ladders = at_shapes(catalogue(), options.shapes, options.cases);
    } catch (const std::invalid_argument& error) {
      throw UsageError(std::string("--shape: ") + error.what());
    }
  if (options.tune && (options.cases == Shapes::small || !options.shapes.empty() ||
                       options.sampling.hardware_counters || options.sampling.energy))
    throw UsageError(
        "--tune has its own shapes and only times them: no --cases=small, --shape, "
        "--hardware_counters or --energy with it");
  if (options.tune) options.ladders = both_sides(options.ladders);
  // The hardware's limits are shares of what the roofs reach.
  if (options.sampling.hardware_counters)
    for (Ladder& ladder : options.ladders)
      if (ladder.name == "roof" && ladder.measured.empty())
        ladder = *std::ranges::find(catalogue(), "roof", &Ladder::name);
  Sampling& sampling = options.sampling;
  sampling.wall_seconds =
      options.wall_limit.value_or(std::max(sampling.wall_seconds, 10 * sampling.device_seconds));
  if (options.wall_limit)
    sampling.settle_seconds = std::min(sampling.settle_seconds, *options.wall_limit / 3);
  if (!options.list) pass.emplace_back(kRunOnceFlag);
  if (!options.result_file.empty())
    pass.push_back("--benchmark_out=" + partial(options.result_file));
  return options;
}

void print_help() {
  std::printf("%s: CUDA kernels climbed rung by rung, %s\n\n", program_name(),
              kEmulated ? "counted on an emulated GPU" : "timed");
  for (const Flag& flag : flags()) {
    if (flag.help.empty() || flag.whose == (kEmulated ? Whose::timing : Whose::counting)) continue;
    std::string shown = "  --" + flag.name + (flag.values.empty() ? "" : "=" + flag.values);
    const std::string indent(24, ' ');
    shown.resize(std::max(shown.size(), indent.size()), ' ');
    if (shown.back() != ' ') shown += "\n" + indent;
    for (const char c : flag.help) shown += c == '\n' ? "\n" + indent : std::string{c};
    std::printf("%s\n", shown.c_str());
  }
  if (!kEmulated)
    std::printf(R"(
--benchmark_min_time is the time on the device to sample a row for at least (0.02s),
or <N>x for N samples, each the mean of 16 launches where a row is short.

%s in the environment: look for a CUDA context in which
small kernels take so long, as they did in another process
(small_kernel_nanoseconds in its results).
)",
                kSmallKernelVariable);
  std::printf(R"(
Rows are named ladder/rung/axis:value/..., so filters read like
--benchmark_filter='^sgemm/.*/n:4096/'. Google Benchmark's flags:

)");
  benchmark::PrintDefaultHelp();
}

}  // namespace ladders
