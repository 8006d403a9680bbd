#include "attention/run_once.h"

#include <algorithm>
#include <limits>

#include "base/try.h"
#include "device/cuda/gpu.h"
#include "tensor/dequantize.h"

namespace topknot::attention {
namespace {

using device::DeviceBuffer;
using device::Stream;

size_t out_count(const HostProblem& p) {
  return static_cast<size_t>(p.args.tokens * p.shape.heads * p.shape.kv_lora_rank);
}
size_t lse_count(const HostProblem& p) {
  return static_cast<size_t>(p.args.tokens * p.shape.heads);
}

int64_t most_visible(const MlaArgs& args) {
  if (args.selection == Selection::kSparse || args.tokens == 0) return 0;
  return *std::max_element(args.dense.visible, args.dense.visible + args.tokens);
}

Result<std::unique_ptr<Attention>> planned(const Backend& backend, const HostProblem& p,
                                           const Resources& resources) {
  TOPKNOT_TRY(std::unique_ptr<Attention> attention, backend.create(p.shape, resources));
  TOPKNOT_CHECK_OK(
      attention->plan({p.args.selection, p.args.tokens, p.args.sparse.topk, most_visible(p.args)}));
  return attention;
}

Result<HostAnswer> run_on_host(const Backend& backend, const HostProblem& p,
                               const Resources& resources) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  HostAnswer answer{std::vector<float>(out_count(p), kNan), std::vector<float>(lse_count(p), kNan)};
  MlaArgs args = p.args;
  args.out = answer.out.data();
  args.lse = p.with_lse ? answer.lse.data() : nullptr;
  TOPKNOT_TRY(const auto attention, planned(backend, p, resources));
  TOPKNOT_CHECK_OK(attention->run(args));
  return answer;
}

// The inputs of one call on a GPU.
class Upload {
 public:
  Upload(int device, const Stream& stream) : device_(device), stream_(stream) {}

  template <class T>
  Result<T*> copy(const T* values, int64_t count, std::string_view purpose) {
    const size_t bytes = static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T);
    TOPKNOT_TRY(DeviceBuffer buffer, DeviceBuffer::allocate(device_, bytes, purpose));
    if (count > 0) {
      TOPKNOT_CHECK_OK(device::copy_to_device(buffer.data(), values,
                                              static_cast<size_t>(count) * sizeof(T), stream_));
    }
    buffers_.push_back(std::move(buffer));
    return buffers_.back().template as<T>();
  }

  // Arguments that point to copies of what those of the problem point to.
  Result<MlaArgs> arguments(const HostProblem& p) {
    MlaArgs args = p.args;
    const int64_t queries = args.tokens * p.shape.heads * p.shape.width();
    std::vector<uint16_t> q(static_cast<size_t>(queries));
    std::transform(static_cast<const float*>(args.q), static_cast<const float*>(args.q) + queries,
                   q.begin(), tensor::f32_to_bf16);
    TOPKNOT_TRY(args.q, copy(q.data(), queries, "queries"));
    TOPKNOT_TRY(args.kv.data,
                copy(p.args.kv.data, p.args.kv.slots * p.args.kv.row_bytes, "latent rows"));
    if (args.selection == Selection::kSparse) {
      TOPKNOT_TRY(args.sparse.topk_slots,
                  copy(p.args.sparse.topk_slots, args.tokens * args.sparse.topk, "slots"));
      return args;
    }
    const DenseRows& rows = p.args.dense;
    TOPKNOT_TRY(args.dense.block_table,
                copy(rows.block_table, p.requests * rows.max_pages, "block table"));
    TOPKNOT_TRY(args.dense.requests, copy(rows.requests, args.tokens, "requests"));
    TOPKNOT_TRY(args.dense.visible, copy(rows.visible, args.tokens, "visible"));
    return args;
  }

 private:
  int device_;
  const Stream& stream_;
  std::vector<DeviceBuffer> buffers_;
};

Result<HostAnswer> run_on_gpu(const Backend& backend, const HostProblem& p,
                              const Resources& resources) {
  const int device = resources.cuda_device;
  TOPKNOT_TRY(const Stream stream, Stream::create(device));
  Upload upload(device, stream);
  TOPKNOT_TRY(MlaArgs args, upload.arguments(p));
  const size_t out_bytes = out_count(p) * sizeof(uint16_t),
               lse_bytes = lse_count(p) * sizeof(float);
  TOPKNOT_TRY(const DeviceBuffer out, DeviceBuffer::allocate(device, out_bytes, "outputs"));
  TOPKNOT_TRY(const DeviceBuffer lse, DeviceBuffer::allocate(device, lse_bytes, "lse"));
  TOPKNOT_CHECK_OK(device::fill(out.data(), HostProblem::kPoison, out_bytes, stream));
  TOPKNOT_CHECK_OK(device::fill(lse.data(), HostProblem::kPoison, lse_bytes, stream));
  args.out = out.data();
  args.lse = p.with_lse ? lse.as<float>() : nullptr;
  args.stream = stream.get();
  TOPKNOT_TRY(const auto attention, planned(backend, p, resources));
  TOPKNOT_CHECK_OK(attention->run(args));
  TOPKNOT_CHECK_OK(stream.synchronize());
  std::vector<uint16_t> rounded(out_count(p));
  HostAnswer answer{std::vector<float>(out_count(p)), std::vector<float>(lse_count(p))};
  TOPKNOT_CHECK_OK(device::copy_to_host(rounded.data(), out.data(), out_bytes, stream));
  TOPKNOT_CHECK_OK(device::copy_to_host(answer.lse.data(), lse.data(), lse_bytes, stream));
  std::transform(rounded.begin(), rounded.end(), answer.out.begin(), tensor::bf16_to_f32);
  return answer;
}

}  // namespace

Result<HostAnswer> run_once(const Backend& backend, const HostProblem& problem,
                            const Resources& resources) {
  return backend.activations == capability::ActivationType::kF32
             ? run_on_host(backend, problem, resources)
             : run_on_gpu(backend, problem, resources);
}

}  // namespace topknot::attention
