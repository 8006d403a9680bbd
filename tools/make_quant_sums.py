#!/usr/bin/env python3
"""Writes src/tensor/dequantize_sums.inc: checksums of what the decoders of the `gguf` package make
of random blocks, for dequantize_test.cc.

usage: make_quant_sums.py > src/tensor/dequantize_sums.inc      (needs tools/requirements.txt)
Bytes and checksum are made the same way in dequantize_test.cc. 1,024 blocks name every entry of
every codebook, and their scales include infinite, undefined and subnormal ones.
"""
import sys

import gguf
import numpy as np

BLOCKS = 1024
TYPES = ("Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS IQ2_XXS IQ2_XS IQ2_S "
         "IQ3_XXS IQ3_S IQ1_S IQ1_M MXFP4 NVFP4").split()


def random_bytes(seed, count):
    """SplitMix64 (Steele, Lea, Flood 2014), little-endian words."""
    step = np.uint64(0x9E3779B97F4A7C15)
    z = np.uint64(seed) + np.arange(1, count // 8 + 2, dtype=np.uint64) * step
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype("<u8").view(np.uint8)[:count]


def checksum(values):
    """Sum over i of (2 i + 1) times the bits of value i, with one NaN and one zero, modulo 2^64."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits[np.isnan(values)] = 0x7FC00000
    bits[values == 0] = 0
    return int((bits * (2 * np.arange(len(bits), dtype=np.uint64) + 1)).sum(dtype=np.uint64))


def main():
    print("// Made by tools/make_quant_sums.py with the gguf package; not to be edited.")
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks = random_bytes(int(kind), BLOCKS * block_bytes).reshape(BLOCKS, block_bytes)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(blocks, kind).ravel()
        print(f"{{DType::k{name}, 0x{checksum(values):016X}}},")
    return 0


if __name__ == "__main__":
    sys.exit(main())
