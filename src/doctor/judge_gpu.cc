#include "doctor/judge_gpu.h"

#include <algorithm>

#include "base/strings.h"

namespace topknot::doctor {
namespace {

// 13000 is "13.0".
std::string cuda_version(int number) {
  return number > 0 ? cat(number / 1000, ".", number % 1000 / 10) : "none";
}

// Why no GPU can be used: broken only where there is one that could be.
Check check_absent(const Findings& found) {
  const device::CudaFacts& cuda = found.cuda;
  const int present = found.system.nvidia_gpus;
  const bool too_old = cuda.built && cuda.driver_version > 0 &&
                       cuda.driver_version / 1000 < cuda.runtime_version / 1000;
  Check check{.name = "GPUs"};
  if (present == 0 && !too_old) {
    check.text =
        cuda.built ? cat("none: ", cuda.problem) : "none on the PCI bus; no GPU code built";
    return check;
  }
  check.text = cat(present, " on the PCI bus, none usable: ", cuda.problem);
  if (cuda.driver_version > 0) {
    check.text += cat("; the driver supports CUDA ", cuda_version(cuda.driver_version),
                      ", this program uses ", cuda_version(cuda.runtime_version));
  }
  check.verdict = cuda.built ? Verdict::kProblem : Verdict::kNote;
  check.remedy = cuda.remedy;
  return check;
}

std::string link_text(const device::PcieLink& link) {
  if (link.width == 0) return {};
  return cat(", PCIe x", link.width,
             link.max_width > link.width ? cat(" of x", link.max_width) : "",
             link.max_speed.empty() ? "" : cat(", at most ", link.max_speed));
}

std::string describe(const Gpu& gpu) {
  const device::CudaDevice& facts = gpu.facts;
  return cat(
      printable(facts.name, 100), ", sm_", facts.sm, ", ", facts.sm_count, " multiprocessors, ",
      human_bytes(facts.memory_free_bytes), " free of ", human_bytes(facts.memory_total_bytes),
      ", ", human_bytes(static_cast<uint64_t>(facts.shared_memory_per_block)),
      " of shared memory a block, ", human_bytes(static_cast<uint64_t>(facts.l2_cache_bytes)),
      " of L2", link_text(gpu.link));
}

Check check_gpu(const Gpu& gpu) {
  Check check{.name = cat("cuda:", gpu.facts.index), .text = describe(gpu)};
  const Error* error = gpu.probe_error ? &*gpu.probe_error : nullptr;
  if (error == nullptr && gpu.bandwidth && !*gpu.bandwidth) error = &gpu.bandwidth->error();
  if (error != nullptr) {
    check.verdict = Verdict::kProblem;
    check.text += cat("; ", error->what, ": ", error->why);
    check.remedy = error->fix;
    return check;
  }
  check.text += "; the probe kernel computed right";
  if (gpu.bandwidth) {
    const device::CudaBandwidth& rates = **gpu.bandwidth;
    check.text += cat("; reads ", rate_text(rates.read), ", from the host ",
                      rate_text(rates.host_to_device), ", to it ", rate_text(rates.device_to_host));
  }
  if (gpu.link.width > 0 && gpu.link.width < gpu.link.max_width) {
    check.verdict = Verdict::kNote;
    check.remedy = "fewer lanes than the card has: another slot or riser would make copies faster";
  }
  return check;
}

void add_peers(const Measured<std::vector<device::CudaPeer>>& peers, std::vector<Check>* checks) {
  if (!peers) return;
  Check check{.name = "GPU pairs"};
  if (!*peers) {
    check.verdict = Verdict::kProblem;
    check.text = cat(peers->error().what, ": ", peers->error().why);
    check.remedy = peers->error().fix;
    checks->push_back(std::move(check));
    return;
  }
  size_t direct = 0;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (const device::CudaPeer& each : **peers) {
    direct += each.direct ? 1 : 0;
    least = std::min(least, each.bytes_per_second);
    most = std::max(most, each.bytes_per_second);
  }
  check.text = cat(direct, " of ", (*peers)->size(), " ordered pairs reach each other directly; ",
                   "copies ", rate_text(least), " to ", rate_text(most));
  if (direct < (*peers)->size()) {
    check.verdict = Verdict::kNote;
    check.remedy =
        "copies between the others go through host memory: consumer cards offer no other "
        "way; on a server check the IOMMU and ACS settings of its firmware";
  }
  checks->push_back(std::move(check));
}

}  // namespace

std::string rate_text(uint64_t bytes_per_second) {
  return fmt::format("{:.1f} GB/s", static_cast<double>(bytes_per_second) / 1e9);
}

void add_gpus(const Findings& found, std::vector<Check>* checks) {
  if (found.gpus.empty()) {
    checks->push_back(check_absent(found));
    return;
  }
  checks->push_back({.name = "driver",
                     .text = cat("supports CUDA ", cuda_version(found.cuda.driver_version),
                                 ", this program uses ", cuda_version(found.cuda.runtime_version),
                                 found.system.nvidia_driver.empty()
                                     ? std::string()
                                     : cat("; kernel module ", found.system.nvidia_driver))});
  for (const Gpu& each : found.gpus) checks->push_back(check_gpu(each));
  add_peers(found.peers, checks);
}

}  // namespace topknot::doctor
