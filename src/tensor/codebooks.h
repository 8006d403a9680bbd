// Values that quants index. The grids are groups of values, first value first; they are made from
// codebooks.txt at build time. Oracle: the vectors of gguf.md 5.2 and 5.3.
#pragma once

#include <cstdint>

namespace topknot::tensor {

extern const int8_t kIq2XxsGrid[256][8];  // IQ2_XXS, magnitudes
extern const int8_t kIq2XsGrid[512][8];   // IQ2_XS, magnitudes
extern const int8_t kIq2SGrid[1024][8];   // IQ2_S, magnitudes
extern const int8_t kIq3XxsGrid[256][4];  // IQ3_XXS, magnitudes
extern const int8_t kIq3SGrid[512][4];    // IQ3_S, magnitudes
extern const int8_t kIq1Grid[2048][8];    // IQ1_S and IQ1_M, -1 to 1

constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of the four-bit float E2M1, whose half is no integer. Bit 3 is the sign; a
// negative zero decodes to zero, as in ggml.
constexpr int8_t kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace topknot::tensor
