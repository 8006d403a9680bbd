// T-1.1: every kind of device with every kind of model gets a complete plan, or a refusal that says
// what was needed and found for each operation.
#include <map>

#include "plan/planned_model.h"

namespace topknot::test {
namespace {

struct Device {
  int sm;  // 0: a processor
  uint64_t shared_memory;
};
constexpr Device kDevices[] = {{70, 98'304},   {75, 65'536},  {80, 166'912},  {86, 101'376},
                               {89, 101'376},  {90, 232'448}, {100, 232'448}, {120, 101'376},
                               {121, 101'376}, {0, 0}};
constexpr const char* kModels[] = {"deepseek-v2-lite-q4_k_m", "deepseek-v3.2-q4_k_m",
                                   "glm-5-ud-q4_k_xl", "glm-5.2-ud-q4_k_xl", "nope-512"};
constexpr uint64_t kMemory = uint64_t{2} << 40;

synth::Request headers(const std::string& name, const Folder& folder) {
  if (name != "nope-512") return headers_of(name, folder);
  synth::Request request;
  request.shape.qk_rope = 0;  // the latent row is 512 wide, nothing is rotated
  request.shape.qk_nope = 256;
  request.shape.index_topk = 512;
  request.output.headers_only = true;
  request.path = folder.file("model");
  request.quiet = true;
  return request;
}

device::Machine machine_of(const Device& device) {
  if (device.sm > 0) return gpu_machine(device.sm, device.shared_memory, kMemory);
  device::HostFacts facts;
  facts.cores = 4;
  facts.memory.total_bytes = facts.memory.available_bytes = kMemory;
  return device::machine_of(facts, {});
}

class DeviceTable : public testing::TestWithParam<const char*> {};

TEST_P(DeviceTable, EveryDeviceIsAnsweredInFull) {
  const Folder folder;
  const auto model = OpenModel::open(write_model(headers(GetParam(), folder)));
  for (const Device& device : kDevices) {
    SCOPED_TRACE(device.sm);
    const auto plan = model->plan({}, machine_of(device));
    ASSERT_TRUE(plan) << plan.error().to_string();
    expect_explained(*plan);
    EXPECT_EQ(plan->price.decode.empty(), false);
    // What the table of types says is what the products of a host can do.
    bool decoded = true;
    for (const model::UsedTensor& each : model->tensors.tensors) {
      decoded = decoded && tensor::dtype_info(each.info->type).decoded;
    }
    EXPECT_EQ(plan->complete(), device.sm == 0 && decoded);
    EXPECT_EQ(static_cast<bool>(plan::check_runnable(*plan, {})), plan->complete());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceTable, testing::ValuesIn(kModels),
                         [](const auto& each) { return "model" + std::to_string(each.index); });

}  // namespace
}  // namespace topknot::test
