"""Topknot's GPU kernels for torch tensors: a thin layer over libtopknot_kernels.so.

    import topknot_kernels as tk
    mla = tk.Mla(heads=64, row_format="bf16")          # R 512, P 64
    mla.plan(tokens=1, topk=2048)                      # once for each size of batch
    out, lse = mla.run(q, kv_rows, topk_slots=slots, sm_scale=0.0625)

Shapes are those of include/topknot/kernels.h. Tensors must be contiguous, on one CUDA device; run()
enqueues on torch's current stream and can be captured in a CUDA graph. The library is found beside
this file, through TOPKNOT_KERNELS_LIBRARY, or by the system's loader.
"""
import ctypes
import os

import torch

ABI_VERSION = 1
ROW_FORMATS = {"bf16": 1, "fp8_ds": 2, "q8_0": 3}


class _MlaShape(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_int64), ("device", ctypes.c_int32),
                ("heads", ctypes.c_int32), ("kv_lora_rank", ctypes.c_int32),
                ("qk_rope_head_dim", ctypes.c_int32), ("row_format", ctypes.c_int32),
                ("dense", ctypes.c_int32)]


class _MlaBatch(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in
                ("struct_bytes", "tokens", "topk", "max_visible")]


class _MlaArgs(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_int64), ("q", ctypes.c_void_p),
                ("kv_rows", ctypes.c_void_p), ("slots", ctypes.c_int64),
                ("sm_scale", ctypes.c_float), ("out", ctypes.c_void_p), ("lse", ctypes.c_void_p),
                ("topk_slots", ctypes.c_void_p), ("block_table", ctypes.c_void_p),
                ("max_pages", ctypes.c_int64), ("requests", ctypes.c_void_p),
                ("visible", ctypes.c_void_p)]


class _IndexerShape(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_int64), ("device", ctypes.c_int32),
                ("heads", ctypes.c_int32), ("head_dim", ctypes.c_int32), ("topk", ctypes.c_int32),
                ("max_tokens", ctypes.c_int64), ("max_context", ctypes.c_int64),
                ("key_format", ctypes.c_int32)]


class _IndexerArgs(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_int64), ("q", ctypes.c_void_p),
                ("weights", ctypes.c_void_p), ("key_rows", ctypes.c_void_p),
                ("slots", ctypes.c_int64), ("block_table", ctypes.c_void_p),
                ("max_pages", ctypes.c_int64), ("requests", ctypes.c_void_p),
                ("visible", ctypes.c_void_p), ("tokens", ctypes.c_int64),
                ("request_count", ctypes.c_int64), ("max_visible", ctypes.c_int64),
                ("positions", ctypes.c_void_p)]


class _SlotMapArgs(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_int64), ("positions", ctypes.c_void_p),
                ("requests", ctypes.c_void_p), ("block_table", ctypes.c_void_p),
                ("tokens", ctypes.c_int64), ("width", ctypes.c_int64),
                ("max_pages", ctypes.c_int64), ("page_tokens", ctypes.c_int32),
                ("slots", ctypes.c_void_p), ("valid", ctypes.c_void_p),
                ("out_of_range", ctypes.c_void_p)]


class KernelError(RuntimeError):
    """What the library says: what, where, why and what to do about it."""


def _load():
    name = "libtopknot_kernels.so"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    path = os.environ.get("TOPKNOT_KERNELS_LIBRARY") or (beside if os.path.exists(beside) else name)
    library = ctypes.CDLL(path)
    version = library.topknot_kernels_abi_version()
    if version != ABI_VERSION:
        raise KernelError(f"{path} has ABI version {version}; this module was written for "
                          f"{ABI_VERSION}: take both from one release")
    library.topknot_last_error.restype = ctypes.c_char_p
    library.topknot_mla_backend.restype = ctypes.c_char_p
    library.topknot_mla_backend.argtypes = [ctypes.c_void_p]
    library.topknot_mla_destroy.argtypes = [ctypes.c_void_p]
    library.topknot_indexer_destroy.argtypes = [ctypes.c_void_p]
    library.topknot_row_bytes.restype = ctypes.c_int64
    return library


_library = _load()


def _check(status):
    if status != 0:
        raise KernelError(_library.topknot_last_error().decode("utf-8", "replace"))


def _filled(kind, **values):
    struct = kind(**values)
    struct.struct_bytes = ctypes.sizeof(kind)
    return struct


def _pointer(name, tensor, dtype, shape, device):
    """The address of a tensor that is what the kernel will take it for."""
    if tensor is None:
        return None
    want = f"{name} must be a contiguous {dtype} tensor of shape {list(shape)} on cuda:{device}"
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{want}, not {type(tensor).__name__}")
    same = len(shape) == tensor.dim() and all(w is None or w == f
                                              for w, f in zip(shape, tensor.shape))
    if (tensor.dtype != dtype or not same or not tensor.is_contiguous()
            or tensor.device.type != "cuda" or tensor.device.index != device):
        raise ValueError(f"{want}, not {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
                         f"{'' if tensor.is_contiguous() else ', with gaps'}")
    return tensor.data_ptr()


def _stream(device):
    return ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)


def row_bytes(row_format, kv_lora_rank=512, qk_rope_head_dim=64):
    """Bytes of a latent row."""
    return _library.topknot_row_bytes(ROW_FORMATS[row_format], kv_lora_rank, qk_rope_head_dim)


class Mla:
    """MLA in absorbed form over latent rows: sparse (a list of slots for each token) or dense."""

    def __init__(self, heads, kv_lora_rank=512, qk_rope_head_dim=64, row_format="bf16",
                 dense=False, device=0):
        self._handle = ctypes.c_void_p()
        self.heads, self.rank, self.rope = heads, kv_lora_rank, qk_rope_head_dim
        self.row_format, self.dense, self.device = row_format, dense, device
        shape = _filled(_MlaShape, device=device, heads=heads, kv_lora_rank=kv_lora_rank,
                        qk_rope_head_dim=qk_rope_head_dim, row_format=ROW_FORMATS[row_format],
                        dense=int(dense))
        _check(_library.topknot_mla_create(ctypes.byref(shape), ctypes.byref(self._handle)))
        self._tokens = self._topk = 0

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.topknot_mla_destroy(self._handle)

    @property
    def backend(self):
        return _library.topknot_mla_backend(self._handle).decode()

    def plan(self, tokens, topk=0, max_visible=0):
        """Host work for calls of this size. `topk` for sparse, `max_visible` for dense."""
        batch = _filled(_MlaBatch, tokens=tokens, topk=topk, max_visible=max_visible)
        _check(_library.topknot_mla_plan(self._handle, ctypes.byref(batch)))
        self._tokens, self._topk = tokens, topk

    def run(self, q, kv_rows, sm_scale, topk_slots=None, block_table=None, requests=None,
            visible=None, out=None, lse=None):
        """Returns (out bf16 [tokens, H, R], lse f32 [tokens, H])."""
        t, d = self._tokens, self.device
        if out is None:
            out = torch.empty(t, self.heads, self.rank, dtype=torch.bfloat16, device=q.device)
        if lse is None:
            lse = torch.empty(t, self.heads, dtype=torch.float32, device=q.device)
        rows = ((torch.bfloat16, (None, self.rank + self.rope)) if self.row_format == "bf16" else
                (torch.uint8, (None, row_bytes(self.row_format, self.rank, self.rope))))
        args = _filled(
            _MlaArgs,
            q=_pointer("q", q, torch.bfloat16, (t, self.heads, self.rank + self.rope), d),
            kv_rows=_pointer("kv_rows", kv_rows, *rows, d), slots=kv_rows.shape[0],
            sm_scale=sm_scale,
            out=_pointer("out", out, torch.bfloat16, (t, self.heads, self.rank), d),
            lse=_pointer("lse", lse, torch.float32, (t, self.heads), d),
            topk_slots=_pointer("topk_slots", topk_slots, torch.int32, (t, self._topk), d),
            block_table=_pointer("block_table", block_table, torch.int32, (None, None), d),
            max_pages=0 if block_table is None else block_table.shape[1],
            requests=_pointer("requests", requests, torch.int32, (t,), d),
            visible=_pointer("visible", visible, torch.int32, (t,), d))
        _check(_library.topknot_mla_run(self._handle, ctypes.byref(args), _stream(d)))
        return out, lse


class Indexer:
    """The DSA indexer: the positions of the top-k keys of each token."""

    def __init__(self, heads, topk, max_tokens, max_context, head_dim=128, key_format="bf16",
                 device=0):
        self._handle = ctypes.c_void_p()
        self.heads, self.head_dim, self.topk, self.device = heads, head_dim, topk, device
        self.key_format = key_format
        shape = _filled(_IndexerShape, device=device, heads=heads, head_dim=head_dim, topk=topk,
                        max_tokens=max_tokens, max_context=max_context,
                        key_format=ROW_FORMATS[key_format])
        _check(_library.topknot_indexer_create(ctypes.byref(shape), _stream(device),
                                               ctypes.byref(self._handle)))

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.topknot_indexer_destroy(self._handle)

    def run(self, q, weights, keys, block_table, requests, visible, request_count=1,
            max_visible=None, positions=None):
        """Returns positions i32 [tokens, topk], ascending, then -1. Without max_visible it is read
        from `visible`, which waits for the GPU."""
        tokens, d = q.shape[0], self.device
        if positions is None:
            positions = torch.empty(tokens, self.topk, dtype=torch.int32, device=q.device)
        if max_visible is None:
            max_visible = int(visible.max()) if tokens else 0
        rows = ((torch.bfloat16, (None, self.head_dim)) if self.key_format == "bf16" else
                (torch.uint8, (None, row_bytes(self.key_format, self.head_dim, 0))))
        args = _filled(
            _IndexerArgs,
            q=_pointer("q", q, torch.bfloat16, (tokens, self.heads, self.head_dim), d),
            weights=_pointer("weights", weights, torch.float32, (tokens, self.heads), d),
            key_rows=_pointer("keys", keys, *rows, d), slots=keys.shape[0],
            block_table=_pointer("block_table", block_table, torch.int32, (None, None), d),
            max_pages=block_table.shape[1],
            requests=_pointer("requests", requests, torch.int32, (tokens,), d),
            visible=_pointer("visible", visible, torch.int32, (tokens,), d),
            tokens=tokens, request_count=request_count, max_visible=max_visible,
            positions=_pointer("positions", positions, torch.int32, (tokens, self.topk), d))
        _check(_library.topknot_indexer_run(self._handle, ctypes.byref(args), _stream(d)))
        return positions


def slot_map(positions, requests, block_table, page_tokens):
    """Positions [tokens, width] to physical slots. Returns (slots, valid entries of each row)."""
    tokens, width = positions.shape
    device = positions.device.index
    slots = torch.empty_like(positions)
    valid = torch.empty(tokens, dtype=torch.int32, device=positions.device)
    args = _filled(
        _SlotMapArgs,
        positions=_pointer("positions", positions, torch.int32, (tokens, width), device),
        requests=_pointer("requests", requests, torch.int32, (tokens,), device),
        block_table=_pointer("block_table", block_table, torch.int32, (None, None), device),
        tokens=tokens, width=width, max_pages=block_table.shape[1], page_tokens=page_tokens,
        slots=slots.data_ptr(), valid=valid.data_ptr())
    _check(_library.topknot_slot_map(ctypes.byref(args), _stream(device)))
    return slots, valid
