"""Writes the files that tests/support/npz_test.cc reads: make_npz.py, in this folder."""

import numpy as np

np.savez_compressed(
    "types.npz",
    f32=np.array([[1.5, -2.25, np.inf], [3.0e-8, -0.0, 65504.0]], dtype=np.float32),
    f64=np.array([0.1, -1e300]),
    i16=np.array([-32768, 0, 32767], dtype=np.int16),
    i32=np.arange(24, dtype=np.int32).reshape(2, 3, 4),
    i64=np.array([-5, 2**31 - 1], dtype=np.int64),
    wide=np.array([2**40], dtype=np.int64),
    u8=np.array([0, 255, 7], dtype=np.uint8),
    flags=np.array([True, False, True]),
    scalar=np.float32(42.0),
    empty=np.zeros((0, 5), dtype=np.float32),
    **{"group/part": np.array([7], dtype=np.int32)}
)
np.savez("stored.npz", x=np.arange(5, dtype=np.float32))
np.savez("fortran.npz", x=np.asfortranarray(np.ones((2, 3), dtype=np.float32)))
np.savez("complex.npz", x=np.zeros(2, dtype=np.complex64))
