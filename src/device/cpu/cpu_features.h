// Instruction sets that this process may use: offered by the processor and enabled by the operating
// system (registers of a set the kernel does not save must not be touched).
// Source: Intel SDM vol. 2A CPUID, vol. 1 ch. 13 (XCR0); Linux arm64 elf_hwcaps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace topknot::device {

// Every flag is false on an architecture that does not have it.
struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx_vnni = false;
  bool amx_tile =
      false;  // the process must still ask for tile data (arch_prctl) before its first use
  bool amx_int8 = false;
  bool amx_bf16 = false;
  bool neon = false;
  bool arm_dotprod = false;
  bool arm_i8mm = false;
  bool arm_bf16 = false;
  bool arm_sve = false;
};

// What CPUID and XGETBV answered; kept apart from the asking so that any processor can be tested.
struct CpuidAnswers {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_0_ebx = 0, leaf7_0_ecx = 0, leaf7_0_edx = 0;
  uint32_t leaf7_1_eax = 0;
  uint64_t xcr0 = 0;  // 0 when the operating system does not use XSAVE
};
CpuFeatures features_from_cpuid(const CpuidAnswers& answers);

CpuFeatures cpu_features();  // of the running processor

// "avx2", "fma", ... in the order of the struct; what people and plans read.
std::vector<std::string> feature_names(const CpuFeatures& features);

}  // namespace topknot::device
