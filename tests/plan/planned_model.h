// A published model's headers at full size, opened and planned for.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>

#include "gguf/model_file.h"
#include "model/config.h"
#include "model/weights.h"
#include "plan/plan.h"
#include "synth/presets.h"
#include "synth/synth.h"

namespace topknot::test {

// A folder that goes away with its files.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "topknot-plan-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// The first part of a model that synth wrote; fails the test when it cannot.
inline std::string write_model(const synth::Request& request) {
  const auto made = synth::make_model(request);
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? made->parts.front().path : std::string();
}

inline synth::Request headers_of(std::string_view preset, const Folder& folder) {
  const auto found = synth::find_preset(preset);
  EXPECT_TRUE(found) << preset;
  synth::Request request;
  request.shape = found->shape;
  request.types = found->types;
  request.output.split = found->split;
  request.output.headers_only = true;
  request.path = folder.file("model");
  request.quiet = true;
  return request;
}

struct OpenModel {
  gguf::ModelFile file;
  model::ModelConfig config;
  model::CheckedTensors tensors;

  static std::unique_ptr<OpenModel> open(const std::string& path) {
    auto file = gguf::ModelFile::open(path);
    EXPECT_TRUE(file) << file.error().to_string();
    auto config = model::read_config(*file);
    EXPECT_TRUE(config) << config.error().to_string();
    auto tensors = model::check_tensors(*file, *config);
    EXPECT_TRUE(tensors) << tensors.error().to_string();
    return std::make_unique<OpenModel>(
        OpenModel{std::move(*file), std::move(*config), std::move(*tensors)});
  }

  Result<plan::Plan> plan(const plan::PlanRequest& request, const device::Machine& machine) const {
    return plan::make_plan(config, tensors, request, machine);
  }
};

// A machine of GPUs that has nothing but a compute capability and what goes with it.
inline device::Machine gpu_machine(int sm, uint64_t shared_memory, uint64_t memory) {
  device::Machine machine;
  machine.name = "sm_" + std::to_string(sm);
  device::DeviceFacts gpu;
  gpu.kind = device::DeviceKind::kCuda;
  gpu.name = machine.name;
  gpu.sm = sm;
  gpu.shared_memory_per_block_bytes = shared_memory;
  gpu.memory_bytes = memory;
  machine.devices.push_back(gpu);
  return machine;
}

// Every operation is chosen, or every candidate of it says what was needed and found.
inline void expect_explained(const plan::Plan& plan) {
  for (const plan::Operation& each : plan.operations) {
    if (each.choice.chosen) continue;
    ASSERT_FALSE(each.choice.candidates.empty()) << each.name();
    for (const capability::Candidate& candidate : each.choice.candidates) {
      EXPECT_FALSE(candidate.refusals.empty()) << each.name() << ", " << candidate.name;
      for (const capability::Refusal& refusal : candidate.refusals) {
        EXPECT_FALSE(refusal.what.empty() || refusal.needed.empty() || refusal.found.empty() ||
                     refusal.because.empty())
            << each.name() << ", " << candidate.name;
      }
    }
  }
}

}  // namespace topknot::test
