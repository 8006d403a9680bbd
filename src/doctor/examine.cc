#include "doctor/examine.h"

#include <algorithm>
#include <ctime>

#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/try.h"
#include "doctor/benchmark.h"
#include "doctor/products.h"
#include "doctor/report.h"

namespace topknot::doctor {
namespace {

using device::ReadRequest;

constexpr uint64_t kCachesRead = 4;  // times the last caches
constexpr uint64_t kLeastBandwidthBytes = uint64_t{256} << 20;
constexpr uint64_t kMostOfAvailable = 4;  // a quarter of it
constexpr int kProbeThreads = 2;          // as many as find a race, not all of a host

// Seconds of each measurement.
struct Durations {
  double one_thread, all_threads, node, products, decoding, gpu, peer;
  device::FileReadLimits disk;
};
constexpr Durations kDurations = {.one_thread = 0.5,
                                  .all_threads = 1,
                                  .node = 0.5,
                                  .products = 0.2,
                                  .decoding = 0.05,
                                  .gpu = 0.2,
                                  .peer = 0.05,
                                  .disk = {.bytes = uint64_t{8} << 30, .seconds = 3}};
constexpr Durations kQuickDurations = {.one_thread = 0.1,
                                       .all_threads = 0.1,
                                       .node = 0.1,
                                       .products = 0.02,
                                       .decoding = 0.01,
                                       .gpu = 0.05,
                                       .peer = 0.01,
                                       .disk = {.bytes = uint64_t{1} << 30, .seconds = 0.5}};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

uint64_t largest_cache(const device::HostFacts& host) {
  uint64_t bytes = 0;
  for (const device::Cache& each : host.caches) bytes = std::max(bytes, each.bytes);
  return bytes;
}

std::vector<int> usable_of(const device::NumaNode& node, const std::vector<int>& usable) {
  std::vector<int> out;
  for (const int each : device::parse_processor_list(node.cpus)) {
    if (std::binary_search(usable.begin(), usable.end(), each)) out.push_back(each);
  }
  return out;
}

class Examination {
 public:
  explicit Examination(const ExamineOptions& options)
      : options_(options), durations_(options.quick ? kQuickDurations : kDurations) {}

  Result<Findings> run() {
    gather_facts();
    if (!options_.file.empty()) {
      announce("reading the file from its disk");
      TOPKNOT_TRY(found_.disk, device::measure_file_read(options_.file, durations_.disk));
    }
    using Step = void (Examination::*)();
    // The benchmark comes last, for it needs the rates.
    for (const Step step :
         {&Examination::measure_memory, &Examination::measure_products,
          &Examination::probe_attention, &Examination::examine_gpus, &Examination::run_model}) {
      (this->*step)();
      if (options_.cancel != nullptr && *options_.cancel) {
        return Error{.code = Code::kCancelled, .what = "the examination was cancelled"};
      }
    }
    return std::move(found_);
  }

 private:
  void announce(std::string_view what) const {
    if (options_.announce) options_.announce(what);
  }

  void gather_facts() {
    found_.date = today();
    found_.quick = options_.quick;
    found_.system = device::system_facts();
    found_.host = device::host_facts();
    found_.cuda = device::cuda_facts();
    found_.kernels = find_kernel_sets();
  }

  ReadRequest read_request(std::vector<int> readers, uint64_t cache_bytes, double seconds) const {
    return {.readers = std::move(readers),
            .bytes = bandwidth_bytes(cache_bytes, found_.host.memory.available_bytes),
            .seconds = seconds};
  }

  void measure_memory() {
    announce("measuring memory bandwidth");
    const std::vector<int> usable = device::usable_processors();
    const uint64_t cache = largest_cache(found_.host);
    const uint64_t caches = std::max(found_.system.last_level_cache_bytes, cache);
    found_.memory.one_thread = device::measure_read_bandwidth(
        read_request({usable.front()}, cache, durations_.one_thread));
    found_.memory.all_threads = device::measure_read_bandwidth(
        read_request(spread_over(usable, found_.host.cores), caches, durations_.all_threads));
    if (found_.host.numa_nodes.size() > 1) measure_nodes(usable, caches);
  }

  void measure_nodes(const std::vector<int>& usable, uint64_t caches) {
    const std::vector<int> first = usable_of(found_.host.numa_nodes.front(), usable);
    const std::vector<int> last = usable_of(found_.host.numa_nodes.back(), usable);
    const auto count = static_cast<int>(std::min(first.size(), last.size()));
    if (count == 0) return;  // a node of memory only, or one we may not run on
    ReadRequest request = read_request(spread_over(first, count), caches, durations_.node);
    found_.memory.own_node = device::measure_read_bandwidth(request);
    request.owners = spread_over(last, count);
    found_.memory.other_node = device::measure_read_bandwidth(request);
  }

  void measure_products() {
    announce("measuring products and decoding of weights");
    for (const ops::Kernels* each : ops::available_kernels()) {
      found_.products.push_back(
          doctor::measure_products(*each, found_.host.cores, durations_.products));
    }
    found_.decoding = measure_decoding(*ops::available_kernels().front(), durations_.decoding);
  }

  void probe_attention() {
    announce("probing attention backends");
    ThreadPool pool(std::min(available_cores(), kProbeThreads));
    found_.probes = attention::probe_all(attention::BackendList(), &pool);
  }

  void examine_gpus() {
    if (found_.cuda.devices.empty()) return;
    announce("probing and measuring GPUs");
    for (const device::CudaDevice& each : found_.cuda.devices) {
      Gpu gpu{.facts = each, .link = device::pcie_link(each.pci_bus_id)};
      if (auto probed = device::probe_cuda(each.index); !probed) {
        gpu.probe_error = std::move(probed.error());
      } else {
        gpu.bandwidth = device::measure_cuda_bandwidth(each.index, durations_.gpu);
      }
      found_.gpus.push_back(std::move(gpu));
    }
    if (found_.gpus.size() < 2) return;
    found_.peers =
        device::measure_cuda_peers(static_cast<int>(found_.gpus.size()), durations_.peer);
  }

  void run_model() {
    announce("running a small model");
    found_.benchmark = run_benchmark(
        {.quick = options_.quick, .machine = report_machine(found_), .cancel = options_.cancel});
  }

  const ExamineOptions& options_;
  Durations durations_;
  Findings found_;
};

}  // namespace

Result<Findings> examine(const ExamineOptions& options) { return Examination(options).run(); }

uint64_t bandwidth_bytes(uint64_t cache_bytes, uint64_t available_bytes) {
  const uint64_t wanted = std::max(kCachesRead * cache_bytes, kLeastBandwidthBytes);
  if (available_bytes == 0) return wanted;  // nobody told
  return std::min(wanted, available_bytes / kMostOfAvailable);
}

std::vector<int> spread_over(const std::vector<int>& processors, int count) {
  const size_t wanted = std::min(processors.size(), static_cast<size_t>(std::max(count, 1)));
  std::vector<int> out;
  for (size_t i = 0; i < wanted; ++i) out.push_back(processors[i * processors.size() / wanted]);
  return out;
}

}  // namespace topknot::doctor
