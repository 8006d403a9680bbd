// topknot bench: the kernels of this build against what the machine allows.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "base/new_file.h"
#include "base/progress.h"
#include "base/strings.h"
#include "base/try.h"
#include "bench/attention_bench.h"
#include "bench/baseline.h"
#include "bench/ceilings.h"
#include "bench/indexer_bench.h"
#include "bench/plot.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"

namespace topknot::cli {
namespace {

struct BenchOptions {
  std::string operation;
  std::string device = "cuda:0";
  std::string backend;
  std::string svg;
  std::string baseline;
  bool quick = false;
  bool force = false;
  bool json = false;
};

struct Outcome {
  std::string operation;
  bench::Ceilings ceilings;
  std::vector<bench::Row> rows;
};

Result<int> cuda_index(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  if (device.rfind(kPrefix, 0) == 0) {
    const char* begin = device.data() + kPrefix.size();
    const char* end = device.data() + device.size();
    int index = 0;
    const auto parsed = std::from_chars(begin, end, index);
    if (begin < end && parsed.ec == std::errc() && parsed.ptr == end && index >= 0) return index;
  }
  return Error{.code = Code::kInvalidArgument,
               .what = cat("cannot measure '", printable(device, 60), "'"),
               .where = "--device",
               .why = "these benchmarks are of GPUs",
               .fix = "give cuda:0, or the number of another GPU: topknot backends lists them"};
}

Json row_json(const bench::Row& row, const bench::Ceilings& ceilings) {
  Json json = {{"name", row.name}};
  for (const auto& [name, value] : row.shape) json[name] = value;
  json["format"] = row.format;
  json["us"] = row.us;
  json["bytes"] = row.bytes;
  json["flops"] = row.flops;
  json["bytes_per_second"] = row.bytes_per_second();
  json["flops_per_second"] = row.flops_per_second();
  json["floor_us"] = row.floor_us(ceilings);
  json["share_of_floor"] = row.floor_us(ceilings) / row.us;
  json["error"] = row.error;
  json["error_limit"] = row.error_limit;
  json["right"] = row.right();
  json["baseline_us"] = row.baseline_us ? Json(*row.baseline_us) : Json(nullptr);
  json["times_baseline"] = row.baseline_us ? Json(*row.baseline_us / row.us) : Json(nullptr);
  return json;
}

Json to_json(const Outcome& o) {
  Json rows = Json::array();
  for (const bench::Row& row : o.rows) rows.push_back(row_json(row, o.ceilings));
  return {{"operation", o.operation},
          {"device", json_text(o.ceilings.device)},
          {"ceilings",
           {{"read_bytes_per_second", o.ceilings.read_bytes_per_second},
            {"mma_flops_per_second", o.ceilings.mma_flops_per_second}}},
          {"rows", std::move(rows)}};
}

std::string to_text(const Outcome& o) {
  std::string out = fmt::format(
      "{} on {}\nceilings, same run: read {:.2f} TB/s, mma.sync bf16 {:.0f} TFLOP/s\n\n",
      o.operation, o.ceilings.device, o.ceilings.read_bytes_per_second / 1e12,
      o.ceilings.mma_flops_per_second / 1e12);
  size_t width = 5;
  for (const bench::Row& row : o.rows) width = std::max(width, shape_text(row).size());
  out += fmt::format("{:<{}} {:>9} {:>6} {:>6} {:>6} {:>8} {:>7}\n", "shape", width, "us", "GB/s",
                     "TF/s", "floor", "error", "faster");
  for (const bench::Row& row : o.rows) {
    const std::string faster =
        row.baseline_us ? fmt::format("{:.2f}x", *row.baseline_us / row.us) : std::string("-");
    out += fmt::format("{:<{}} {:>9.1f} {:>6.0f} {:>6.1f} {:>5.0f}% {:>8.1e} {:>7}{}\n",
                       shape_text(row), width, row.us, row.bytes_per_second() / 1e9,
                       row.flops_per_second() / 1e12, 100 * row.floor_us(o.ceilings) / row.us,
                       row.error, faster, row.right() ? "" : "  WRONG");
  }
  return out +
         "\nfloor: the share of the time that bytes or operations alone would take; "
         "faster: baseline / this\n";
}

Result<Outcome> run_attention(const BenchOptions& o) {
  TOPKNOT_TRY(const int device, cuda_index(o.device));
  Outcome outcome{.operation = "attention"};
  TOPKNOT_TRY(outcome.ceilings, bench::measure_ceilings(device));
  const auto cases = bench::attention_cases(o.quick);
  Progress progress("bench attention", "shapes", cases.size(), o.json);
  TOPKNOT_TRY(outcome.rows, bench::bench_attention(device, cases, o.backend,
                                                   [&](size_t at) { progress.update(at); }));
  if (outcome.rows.empty()) {
    return Error{.code = Code::kUnsupported,
                 .what = "nothing was measured",
                 .where = o.backend.empty() ? "attention backends" : cat("--backend ", o.backend),
                 .why = "no GPU backend of that name takes any of the shapes on this device",
                 .fix = "topknot backends lists them and their limits"};
  }
  return outcome;
}

Result<Outcome> run_indexer(const BenchOptions& o) {
  TOPKNOT_TRY(const int device, cuda_index(o.device));
  Outcome outcome{.operation = "indexer"};
  TOPKNOT_TRY(outcome.ceilings, bench::measure_ceilings(device));
  const auto cases = bench::indexer_cases(o.quick);
  Progress progress("bench indexer", "shapes", cases.size(), o.json);
  TOPKNOT_TRY(outcome.rows,
              bench::bench_indexer(device, cases, [&](size_t at) { progress.update(at); }));
  return outcome;
}

Result<Outcome> run_operation(const BenchOptions& o) {
  if (o.operation == "attention") return run_attention(o);
  if (o.operation == "indexer") return run_indexer(o);
  return Error{.code = Code::kInvalidArgument,
               .what = cat("no benchmark is called '", printable(o.operation, 60), "'"),
               .where = "topknot bench",
               .why = "there are attention and indexer",
               .fix = "topknot bench attention"};
}

Result<Outcome> measure(const BenchOptions& o) {
  // Before the work, so that a path that cannot be written is told at once.
  std::optional<NewFile> picture;
  if (!o.svg.empty()) {
    TOPKNOT_TRY(picture, NewFile::create(o.svg, o.force ? Overwrite::kYes : Overwrite::kNo));
  }
  TOPKNOT_TRY(Outcome outcome, run_operation(o));
  if (!o.baseline.empty()) {
    TOPKNOT_CHECK_OK(bench::add_baseline(o.baseline, outcome.operation, outcome.rows));
  }
  if (picture) {
    TOPKNOT_CHECK_OK(picture->commit(
        bench::plot_svg(cat("topknot bench ", outcome.operation), outcome.rows, outcome.ceilings)));
  }
  return outcome;
}

int bench_command(const BenchOptions& o) {
  const Result<Outcome> outcome = measure(o);
  if (!outcome) return report(outcome.error());
  if (o.json) {
    write_json(to_json(*outcome));
  } else {
    write_output(to_text(*outcome));
  }
  const bool right = std::all_of(outcome->rows.begin(), outcome->rows.end(),
                                 [](const bench::Row& row) { return row.right(); });
  return right ? 0 : kExitFailed;
}

}  // namespace

void add_bench(CLI::App* program, Action* action) {
  CLI::App* command = program->add_subcommand(
      "bench", "Check and time the kernels, beside what this machine allows");
  auto o = std::make_shared<BenchOptions>();
  command
      ->add_option("operation", o->operation,
                   "attention: sparse and dense MLA; indexer: scores and the top-k")
      ->required()
      ->type_name("OPERATION");
  command->add_option("--device", o->device, "The GPU")->capture_default_str()->type_name("cuda:N");
  command->add_option("--backend", o->backend, "Only this implementation")->type_name("NAME");
  command->add_flag("--quick", o->quick, "A few shapes instead of all");
  command
      ->add_option("--baseline", o->baseline,
                   "A command that times the same shapes, for the ratio (bench/README.md)")
      ->type_name("COMMAND");
  command->add_option("--svg", o->svg, "Write a picture of the results to this file")
      ->type_name("FILE");
  command->add_flag("--force", o->force, "Overwrite that file");
  command->add_flag("--json", o->json, "Print one JSON object");
  command->footer(examples(
      {"topknot bench attention --quick", "topknot bench indexer --json",
       "topknot bench attention --baseline \"python3 bench/virtual_block_table.py\" --svg a.svg"}));
  command->callback([action, o] { *action = [o] { return bench_command(*o); }; });
}

}  // namespace topknot::cli
