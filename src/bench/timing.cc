#include "bench/timing.h"

#include <vector>

#include "base/strings.h"
#include "base/try.h"
#include "bench/row.h"

namespace topknot::bench {

Result<device::CudaDevice> find_gpu(int cuda_device) {
  const device::CudaFacts facts = device::cuda_facts();
  for (const device::CudaDevice& each : facts.devices) {
    if (each.index == cuda_device) return each;
  }
  return Error{
      .code = Code::kNotFound,
      .what = cat("no GPU cuda:", cuda_device),
      .where = "--device",
      .why = facts.devices.empty() ? facts.problem : cat(facts.devices.size(), " GPUs are visible"),
      .fix = facts.devices.empty() ? "measure on a machine with a GPU; topknot doctor examines it"
                                   : "topknot backends lists them"};
}

Result<double> median_us(const device::Stream& stream, int sets,
                         const std::function<Status(int set)>& enqueue, int replays) {
  TOPKNOT_CHECK_OK(enqueue(0));  // loads the module and reports what a capture would hide
  TOPKNOT_CHECK_OK(stream.synchronize());
  TOPKNOT_TRY(const device::Graph graph, device::Graph::capture(stream, [&]() -> Status {
                for (int set = 0; set < sets; ++set) TOPKNOT_CHECK_OK(enqueue(set));
                return {};
              }));
  TOPKNOT_TRY(const device::Event begin, device::Event::create(stream.device()));
  TOPKNOT_TRY(const device::Event end, device::Event::create(stream.device()));
  constexpr int kWarmUps = 2;
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + replays; ++i) {
    TOPKNOT_CHECK_OK(begin.record(stream));
    TOPKNOT_CHECK_OK(graph.launch(stream));
    TOPKNOT_CHECK_OK(end.record(stream));
    TOPKNOT_CHECK_OK(stream.synchronize());
    TOPKNOT_TRY(const double us, device::Event::elapsed_us(begin, end));
    if (i >= kWarmUps) times.push_back(us / sets);
  }
  return median(&times);
}

}  // namespace topknot::bench
