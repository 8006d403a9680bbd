#include "device/cpu/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace topknot::device {
namespace {

bool bit(uint32_t word, int index) { return ((word >> index) & 1u) != 0; }

// State that the kernel must save: XMM and YMM; with AVX-512 also opmask and both ZMM parts; AMX
// tiles.
constexpr uint64_t kAvxState = 0x6;
constexpr uint64_t kAvx512State = 0xe6;
constexpr uint64_t kAmxState = 0x60000;

bool enabled(uint64_t xcr0, uint64_t state) { return (xcr0 & state) == state; }

}  // namespace

CpuFeatures features_from_cpuid(const CpuidAnswers& a) {
  CpuFeatures f;
  if (enabled(a.xcr0, kAvxState)) {
    f.fma = bit(a.leaf1_ecx, 12);
    f.f16c = bit(a.leaf1_ecx, 29);
    f.avx2 = bit(a.leaf7_0_ebx, 5);
    f.avx_vnni = bit(a.leaf7_1_eax, 4);
  }
  if (enabled(a.xcr0, kAvx512State)) {
    f.avx512f = bit(a.leaf7_0_ebx, 16);
    f.avx512bw = bit(a.leaf7_0_ebx, 30);
    f.avx512vl = bit(a.leaf7_0_ebx, 31);
    f.avx512_vnni = bit(a.leaf7_0_ecx, 11);
    f.avx512_bf16 = bit(a.leaf7_1_eax, 5);
  }
  if (enabled(a.xcr0, kAmxState)) {
    f.amx_bf16 = bit(a.leaf7_0_edx, 22);
    f.amx_tile = bit(a.leaf7_0_edx, 24);
    f.amx_int8 = bit(a.leaf7_0_edx, 25);
  }
  return f;
}

#if defined(__x86_64__)

CpuFeatures cpu_features() {
  CpuidAnswers a;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr int kOsxsave = 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return {};
  a.leaf1_ecx = ecx;
  if (bit(ecx, kOsxsave)) {
    uint32_t low = 0, high = 0;
    // The intrinsic needs -mxsave for the whole file; the instruction is guarded by the bit above.
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    a.xcr0 = (static_cast<uint64_t>(high) << 32) | low;
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    const uint32_t last_subleaf = eax;
    a.leaf7_0_ebx = ebx;
    a.leaf7_0_ecx = ecx;
    a.leaf7_0_edx = edx;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      a.leaf7_1_eax = eax;
    }
  }
  return features_from_cpuid(a);
}

#elif defined(__aarch64__)

CpuFeatures cpu_features() {
  const unsigned long hwcap = getauxval(AT_HWCAP);
  const unsigned long hwcap2 = getauxval(AT_HWCAP2);
  CpuFeatures f;
  f.neon = (hwcap & HWCAP_ASIMD) != 0;
  f.arm_dotprod = (hwcap & HWCAP_ASIMDDP) != 0;
  f.arm_sve = (hwcap & HWCAP_SVE) != 0;
  f.arm_i8mm = (hwcap2 & HWCAP2_I8MM) != 0;
  f.arm_bf16 = (hwcap2 & HWCAP2_BF16) != 0;
  return f;
}

#else

CpuFeatures cpu_features() { return {}; }

#endif

std::vector<std::string> feature_names(const CpuFeatures& f) {
  const struct {
    bool present;
    const char* name;
  } rows[] = {
      {f.avx2, "avx2"},
      {f.fma, "fma"},
      {f.f16c, "f16c"},
      {f.avx512f, "avx512f"},
      {f.avx512bw, "avx512bw"},
      {f.avx512vl, "avx512vl"},
      {f.avx512_vnni, "avx512_vnni"},
      {f.avx512_bf16, "avx512_bf16"},
      {f.avx_vnni, "avx_vnni"},
      {f.amx_tile, "amx_tile"},
      {f.amx_int8, "amx_int8"},
      {f.amx_bf16, "amx_bf16"},
      {f.neon, "neon"},
      {f.arm_dotprod, "dotprod"},
      {f.arm_i8mm, "i8mm"},
      {f.arm_bf16, "bf16"},
      {f.arm_sve, "sve"},
  };
  std::vector<std::string> names;
  for (const auto& row : rows) {
    if (row.present) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace topknot::device
