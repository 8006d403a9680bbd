#!/usr/bin/env python3
"""python/topknot_kernels.py on a GPU: numbers against float64, refusals, capture in a graph.

usage: kernels_test.py LIBRARY      (libtopknot_kernels.so)
Exits 77, saying what it lacked, without torch or a GPU.
"""
import math
import os
import sys

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: torch finds no GPU")
    sys.exit(77)

os.environ["TOPKNOT_KERNELS_LIBRARY"] = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import topknot_kernels as tk  # noqa: E402

RANK, ROPE, SCALE = 512, 64, 256 ** -0.5


def fp8_rows(values):
    """Latent rows as 656 bytes, and what they decode to."""
    rows = torch.empty(len(values), 656, dtype=torch.uint8, device="cuda")
    groups = values[:, :RANK].float().view(-1, 4, 128)
    scale = groups.abs().amax(-1) / 448
    quants = (groups / scale[..., None]).to(torch.float8_e4m3fn)
    rows[:, :RANK] = quants.view(-1, RANK).view(torch.uint8)
    rows[:, RANK:RANK + 16] = scale.contiguous().view(torch.uint8)
    rows[:, RANK + 16:] = values[:, RANK:].contiguous().view(torch.uint8)
    decoded = (quants.double() * scale.double()[..., None]).view(-1, RANK)
    return rows, torch.cat([decoded, values[:, RANK:].double()], 1)


def q8_rows(values):
    """Latent rows as GGML blocks of 34 bytes, and what they decode to."""
    blocks = values.float().view(-1, 32)
    scale = (blocks.abs().amax(-1) / 127).half()
    quants = (blocks / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
    rows = torch.cat([scale.view(torch.uint8).view(-1, 2), quants.view(torch.uint8)], 1)
    decoded = quants.double() * scale.double()[:, None]
    return rows.view(len(values), -1).contiguous(), decoded.view(len(values), -1)


def make_rows(name, slots):
    values = torch.randn(slots, RANK + ROPE, device="cuda", dtype=torch.bfloat16)
    if name == "bf16":
        return values, values.double()
    return fp8_rows(values) if name == "fp8_ds" else q8_rows(values)


def expect_close(name, got, want, limit):
    error = ((got.double() - want).norm() / want.norm()).item()
    assert error <= limit, f"{name}: relative error {error:.2e}, limit {limit:.2e}"
    print(f"  {name}: relative error {error:.1e}")


def reference(q, rows):
    scores = q.double() @ rows.T * SCALE
    return torch.softmax(scores, -1) @ rows[:, :RANK], torch.logsumexp(scores, -1)


def test_sparse():
    for row_format, limit in (("bf16", 2.5e-3), ("fp8_ds", 5e-3), ("q8_0", 5e-3)):
        rows, decoded = make_rows(row_format, 5000)
        for heads, tokens, topk in ((8, 3, 2048), (64, 5, 200), (3, 2, 65)):
            q = torch.randn(tokens, heads, RANK + ROPE, device="cuda", dtype=torch.bfloat16)
            slots = torch.argsort(torch.rand(tokens, 5000, device="cuda"), 1)[:, :topk].int()
            slots[:, ::7] = -1
            slots[-1] = -1
            mla = tk.Mla(heads, row_format=row_format)
            mla.plan(tokens, topk=topk)
            out, lse = mla.run(q, rows, SCALE, topk_slots=slots)
            for t in range(tokens - 1):
                picked = decoded[slots[t][slots[t] >= 0].long()]
                want, want_lse = reference(q[t], picked)
                expect_close(f"sparse {row_format} {heads} heads, top-k {topk}", out[t], want,
                             limit)
                assert (lse[t].double() - want_lse).abs().max() < 1e-2
            assert (out[-1] == 0).all() and (lse[-1] == -math.inf).all(), "nothing was selected"


def test_dense():
    rows, decoded = make_rows("bf16", 64 * 40)
    table = torch.randperm(40, device="cuda", dtype=torch.int32).view(2, 20).contiguous()
    q = torch.randn(3, 16, RANK + ROPE, device="cuda", dtype=torch.bfloat16)
    requests = torch.tensor([1, 0, 1], dtype=torch.int32, device="cuda")
    visible = torch.tensor([1280, 1, 700], dtype=torch.int32, device="cuda")
    mla = tk.Mla(16, dense=True)
    mla.plan(3, max_visible=1280)
    out, _ = mla.run(q, rows, SCALE, block_table=table, requests=requests, visible=visible)
    for t in range(3):
        at = torch.arange(visible[t].item(), device="cuda")
        slots = table[requests[t].item()].long()[at // 64] * 64 + at % 64
        expect_close(f"dense, {visible[t]} keys", out[t], reference(q[t], decoded[slots])[0],
                     2.5e-3)


def test_graph():
    rows, decoded = make_rows("bf16", 4096)
    q = torch.randn(2, 8, RANK + ROPE, device="cuda", dtype=torch.bfloat16)
    slots = torch.arange(4096, device="cuda", dtype=torch.int32).view(2, 2048).contiguous()
    mla = tk.Mla(8)
    mla.plan(2, topk=2048)
    out = torch.full((2, 8, RANK), math.nan, dtype=torch.bfloat16, device="cuda")
    lse = torch.empty(2, 8, device="cuda")
    mla.run(q, rows, SCALE, topk_slots=slots, out=out, lse=lse)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mla.run(q, rows, SCALE, topk_slots=slots, out=out, lse=lse)
    q.copy_(torch.randn_like(q))  # a replay reads what is there then
    out.fill_(math.nan)
    graph.replay()
    expect_close("graph replay", out[1], reference(q[1], decoded[2048:])[0], 2.5e-3)


def test_slot_map():
    table = torch.tensor([[5, 3, -1], [0, 9, 2]], dtype=torch.int32, device="cuda")
    positions = torch.tensor([[0, 17, -1, 33], [47, 48, 5, 16]], dtype=torch.int32, device="cuda")
    requests = torch.tensor([0, 1], dtype=torch.int32, device="cuda")
    slots, valid = tk.slot_map(positions, requests, table, 16)
    assert slots.tolist() == [[80, 49, -1, -1], [47, -1, 5, 144]], slots.tolist()
    assert valid.tolist() == [2, 3], valid.tolist()


def test_indexer():
    heads, topk, context, tokens = 32, 2048, 9000, 4
    pages = torch.randperm(2 * 141, device="cuda", dtype=torch.int32).view(2, 141).contiguous()
    keys = torch.randn(2 * 141 * 64, 128, device="cuda", dtype=torch.bfloat16)
    q = torch.randn(tokens, heads, 128, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(tokens, heads, device="cuda") / 64
    requests = torch.tensor([0, 0, 1, 1], dtype=torch.int32, device="cuda")
    visible = torch.tensor([100, 2049, 9000, 5000], dtype=torch.int32, device="cuda")
    indexer = tk.Indexer(heads, topk=topk, max_tokens=tokens, max_context=context)
    positions = indexer.run(q, weights, keys, pages, requests, visible, request_count=2)
    assert positions[0].tolist() == list(range(100)) + [-1] * (topk - 100)
    for t in range(1, tokens):
        at = torch.arange(visible[t].item(), device="cuda")
        rows = keys[pages[requests[t].item()].long()[at // 64] * 64 + at % 64].double()
        scores = weights[t].double() @ torch.relu(q[t].double() @ rows.T)
        chosen = positions[t].long()
        assert (chosen[1:] > chosen[:-1]).all(), "ascending, none twice"
        # Rounding of fp32 sums may swap scores that are this close to the smallest one taken.
        left_out = torch.ones_like(at, dtype=torch.bool)
        left_out[chosen] = False
        gap = (scores[left_out].max() - scores[chosen].min()).item()
        assert gap < 1e-5 * scores.abs().max().item(), f"a better key was left out by {gap}"
        print(f"  indexer, {visible[t]} keys: the best one left out is {-gap:.1e} worse")


def expect_refusal(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__} for {text}")


def test_refusals():
    expect_refusal(tk.KernelError, "cuda:77", lambda: tk.Mla(8, device=77))
    mla = tk.Mla(8)
    q = torch.zeros(1, 8, RANK + ROPE, device="cuda", dtype=torch.bfloat16)
    rows = torch.zeros(64, RANK + ROPE, device="cuda", dtype=torch.bfloat16)
    slots = torch.zeros(1, 64, device="cuda", dtype=torch.int32)
    mla.plan(1, topk=64)
    expect_refusal(ValueError, "q must be", lambda: mla.run(q.half(), rows, SCALE,
                                                            topk_slots=slots))
    expect_refusal(ValueError, "with gaps", lambda: mla.run(
        q, torch.zeros(64, 2 * (RANK + ROPE), device="cuda", dtype=torch.bfloat16)[:, ::2], SCALE,
        topk_slots=slots))
    expect_refusal(tk.KernelError, "topk_slots is null", lambda: mla.run(q, rows, SCALE))
    expect_refusal(tk.KernelError, "sm_scale", lambda: mla.run(q, rows, 0.0, topk_slots=slots))


def main():
    torch.manual_seed(20260701)
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            print(name)
            test()
            torch.cuda.synchronize()
    print("passed")


if __name__ == "__main__":
    main()
