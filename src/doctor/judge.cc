#include "doctor/judge.h"

#include <algorithm>

#include "base/strings.h"
#include "doctor/judge_gpu.h"
#include "topknot/version.h"

namespace topknot::doctor {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::string count_of(int n, std::string_view what) { return cat(n, " ", what, n == 1 ? "" : "s"); }

Check check_build() {
  const BuildInfo& build = build_info();
  const std::string_view type = build.build_type;
  const std::string_view gpus = build.cuda_architectures;
  Check check{
      .name = "build",
      .text = cat("topknot ", build.version, " (", build.commit, "), ", build.compiler, ", ", type,
                  ", ", gpus.empty() ? std::string("no GPU code") : cat("GPU code for sm ", gpus))};
  if (type.starts_with("Rel") && type.find('(') == std::string_view::npos) return check;
  check.verdict = Verdict::kNote;
  check.text += "; rates are not those of a release build";
  check.remedy = "build with scripts/build.sh, or cmake --preset release";
  return check;
}

Check check_system(const device::SystemFacts& system) {
  std::vector<std::string> parts;
  if (!system.os.empty()) parts.push_back(system.os);
  parts.push_back(cat("Linux ", system.kernel, " ", system.architecture));
  if (system.virtual_machine) parts.emplace_back("in a virtual machine");
  if (!system.container.empty()) parts.push_back(cat("in a container (", system.container, ")"));
  return {.name = "system", .text = joined(parts, ", ")};
}

Check check_processor(const Findings& found) {
  const device::HostFacts& host = found.host;
  std::vector<std::string> parts = {printable(host.cpu_name, 200)};
  if (host.sockets > 0) parts.push_back(count_of(host.sockets, "socket"));
  if (found.system.physical_cores > 0) {
    parts.push_back(count_of(found.system.physical_cores, "core"));
  }
  if (found.system.processors > 0) parts.push_back(count_of(found.system.processors, "thread"));
  if (!host.numa_nodes.empty()) {
    parts.push_back(count_of(static_cast<int>(host.numa_nodes.size()), "NUMA node"));
  }
  if (found.system.last_level_cache_bytes > 0) {
    parts.push_back(cat(human_bytes(found.system.last_level_cache_bytes), " of last-level cache"));
  }
  Check check{.name = "processor", .text = joined(parts, ", ")};
  if (host.cores >= found.system.processors) return check;
  check.verdict = Verdict::kNote;
  check.text += cat("; this process may use ", host.cores, " of ", found.system.processors);
  check.remedy = "its affinity (taskset) or control group (--cpus of a container) leaves no more";
  return check;
}

Check check_kernels(const Findings& found) {
  std::vector<std::string> running;
  std::vector<std::string> others;
  for (const KernelSet& each : found.kernels) {
    if (each.runs) {
      running.push_back(each.name);
    } else {
      others.push_back(each.missing.empty() ? cat(each.name, " is not offered")
                                            : cat(each.name, " lacks ", joined(each.missing)));
    }
  }
  const std::string chosen = running.empty() ? "none" : running.front();
  Check check{.name = "kernels", .text = cat(chosen, " chosen, the best that runs here")};
  if (running.size() > 1) {
    check.text += cat("; also ", joined({running.begin() + 1, running.end()}, ", "));
  }
  if (!others.empty()) check.text += cat("; ", joined(others, "; "));
  if (chosen != "portable" || others.empty()) return check;
  check.verdict = Verdict::kNote;
  check.remedy =
      "expect a fraction of the speed; in a virtual machine give it the host's processor "
      "model, so that it sees avx2 and fma";
  return check;
}

Check check_memory(const Findings& found) {
  const device::MemoryFacts& memory = found.host.memory;
  const std::string& pages = found.system.huge_pages;
  Check check{
      .name = "memory",
      .text = cat(human_bytes(memory.available_bytes), " free of ", human_bytes(memory.total_bytes),
                  ", transparent huge pages ", pages.empty() ? "unknown" : pages)};
  if (memory.limited_by_cgroup) {
    check.verdict = Verdict::kNote;
    check.text += "; limited by a control group";
    check.remedy = "give the container or service more memory (--memory) to run larger models";
  }
  if (found.system.address_space_limit) {
    check.verdict = Verdict::kNote;
    check.text +=
        cat("; address space is limited to ", human_bytes(*found.system.address_space_limit));
    check.remedy = "`ulimit -v unlimited`: models are mapped, and a larger one cannot be";
  }
  return check;
}

// What could not be measured.
Check unmeasured(std::string name, const Error& error) {
  return {.name = std::move(name),
          .verdict = Verdict::kProblem,
          .text = cat(error.what, ": ", error.why),
          .remedy = error.fix.empty() ? "report this" : error.fix};
}

void add_memory_rates(const MemoryRates& rates, std::vector<Check>* checks) {
  Check check{.name = "memory rate"};
  for (const auto* each : {&rates.one_thread, &rates.all_threads}) {
    if (!*each) continue;
    if (!**each) {
      checks->push_back(unmeasured(check.name, (*each)->error()));
      return;
    }
    check.text += cat(check.text.empty() ? "" : ", ", rate_text((**each)->bytes_per_second), " by ",
                      count_of((**each)->threads, "thread"));
  }
  if (!check.text.empty()) checks->push_back(std::move(check));
  if (!rates.own_node || !*rates.own_node || !rates.other_node || !*rates.other_node) return;
  checks->push_back(
      {.name = "NUMA",
       .verdict = Verdict::kNote,
       .text = cat(rate_text((*rates.own_node)->bytes_per_second), " from a node's own memory, ",
                   rate_text((*rates.other_node)->bytes_per_second), " from the last node's, by ",
                   count_of((*rates.own_node)->threads, "thread")),
       .remedy = "memory is not placed by node in this version: compare `numactl --interleave=all "
                 "topknot run ...` after dropping the page cache"});
}

std::string operations_text(uint64_t rate) {
  return fmt::format("{:.0f} GFLOP/s", static_cast<double>(rate) / 1e9);
}

void add_products(const Findings& found, std::vector<Check>* checks) {
  Check products{.name = "fp32 products"};
  for (const ProductRates& each : found.products) {
    products.text +=
        cat(products.text.empty() ? "" : "; ", each.kernels, " ", operations_text(each.one_thread),
            " by one thread, ", operations_text(each.all_threads), " by ", each.threads);
  }
  if (!products.text.empty()) checks->push_back(std::move(products));
  Check decoding{.name = "decoding"};
  for (const DecodeRate& each : found.decoding) {
    decoding.text +=
        cat(decoding.text.empty() ? "" : ", ", each.type, " ", rate_text(each.bytes_per_second));
  }
  if (decoding.text.empty()) return;
  decoding.text += cat(" by one thread (", found.decoding.front().kernels, ")");
  checks->push_back(std::move(decoding));
}

void add_disk(const std::optional<device::FileReadRate>& disk, std::vector<Check>* checks) {
  if (!disk) return;
  const device::FileReadRate& rate = *disk;
  Check check{.name = "disk",
              .text = cat(rate_text(rate.bytes_per_second()), ", ", human_bytes(rate.bytes),
                          rate.direct ? " past the page cache" : " through the page cache")};
  if (rate.cached()) {
    check.verdict = Verdict::kNote;
    check.text += fmt::format("; {:.0f} % of it was in memory, so this is no disk's rate",
                              100 * rate.cached_share);
    check.remedy = "give a file that was not read since the machine started";
  } else if (!rate.tells_the_disk()) {
    check.verdict = Verdict::kNote;
    check.text += "; too little to tell a disk's rate";
    check.remedy = "give a larger file, for instance a part of a large model";
  }
  checks->push_back(std::move(check));
}

// One row for each backend: the number that was wrong, or the largest of those that were right.
void add_probes(const std::vector<attention::ProbeResult>& probes, std::vector<Check>* checks) {
  std::vector<std::string> backends;
  for (const attention::ProbeResult& each : probes) {
    const bool known = std::find(backends.begin(), backends.end(), each.backend) != backends.end();
    if (!known) backends.push_back(each.backend);
  }
  for (const std::string& backend : backends) {
    Check check{.name = backend};
    double largest = 0;
    int tiles = 0;
    for (const attention::ProbeResult& each : probes) {
      if (each.backend != backend) continue;
      const std::string which = cat(each.kernels, " ", each.selection);
      if (!each.refusals.empty()) {
        check.verdict = std::max(check.verdict, Verdict::kNote);
        check.text += cat(which, " does not run here: ", each.refusals.front(), "; ");
        check.remedy = "`topknot backends` lists the limits of each backend";
      } else if (!each.problem.empty()) {
        check.verdict = Verdict::kProblem;
        check.text += cat(which, " FAILED: ", each.problem, "; ");
      } else if (!each.passed()) {
        check.verdict = Verdict::kProblem;
        check.text += fmt::format("{} is WRONG: largest difference {:.1e}, limit {:.1e}; ", which,
                                  each.largest_difference, each.limit);
      } else {
        ++tiles;
        largest = std::max(largest, each.largest_difference);
      }
    }
    check.text += fmt::format("{} computed right, largest difference {:.1e}",
                              count_of(tiles, "probe"), largest);
    if (check.verdict == Verdict::kProblem) {
      check.remedy =
          "choose another one with --attention-backend or --kernels, and send this report";
    }
    checks->push_back(std::move(check));
  }
}

void add_benchmark(const Findings& found, std::vector<Check>* checks) {
  if (!found.benchmark) return;
  if (!*found.benchmark) {
    checks->push_back(unmeasured("benchmark", found.benchmark->error()));
    return;
  }
  const Benchmark& run = **found.benchmark;
  Check check{
      .name = "benchmark",
      .text = fmt::format("{} of random weights: prompt {:.0f} tokens/s, answer {:.1f} "
                          "tokens/s ({}, {}, {})",
                          human_bytes(run.model_bytes), run.prompt_rate(), run.rate(),
                          run.attention_backend, run.kernels, count_of(run.threads, "thread"))};
  check.text += cat("; it reads ", human_bytes(run.bytes_per_token), " a token, ",
                    rate_text(static_cast<uint64_t>(run.bytes_per_second())));
  const auto& all = found.memory.all_threads;
  if (all && *all && (*all)->bytes_per_second > 0) {
    check.text += fmt::format(", {:.0f} % of the memory rate",
                              100 * run.bytes_per_second() / double((*all)->bytes_per_second));
  }
  checks->push_back(std::move(check));
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kNote: return "note";
    case Verdict::kProblem: return "problem";
  }
  return "unknown";
}

std::vector<Check> judge(const Findings& found) {
  std::vector<Check> checks = {check_build(), check_system(found.system), check_processor(found),
                               check_kernels(found), check_memory(found)};
  add_memory_rates(found.memory, &checks);
  add_products(found, &checks);
  add_disk(found.disk, &checks);
  add_gpus(found, &checks);
  add_probes(found.probes, &checks);
  add_benchmark(found, &checks);
  return checks;
}

bool anything_broken(const std::vector<Check>& checks) {
  return std::any_of(checks.begin(), checks.end(),
                     [](const Check& each) { return each.verdict == Verdict::kProblem; });
}

}  // namespace topknot::doctor
