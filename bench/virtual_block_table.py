#!/usr/bin/env python3
"""Times the "virtual block table" way on the shapes of `topknot bench`, as its baseline.

The method: give the selected slots to an ordinary paged attention kernel as a block table of page
size 1. It is what an engine without a sparse kernel of its own does. Written for this benchmark in
Triton, with torch for the indexer: dense logits, then torch.topk.

usage: virtual_block_table.py CASES.json     (src/bench/baseline.h says what is in the file)
Prints a JSON array: the median microseconds of each case, null where it does not apply. Needs
torch with CUDA, and triton.
"""
import json
import sys

import torch
import triton
import triton.language as tl

RANK, ROPE = 512, 64
WIDTH = RANK + ROPE
POOL_SLOTS = 1 << 21
COLD_BYTES = 200_000_000  # a graph's input sets read more than this: rows are not left in L2
SCALE = 256 ** -0.5


@triton.jit
def attend(q, rows, slots, partial, sums, heads, topk, tiles_per_split, scale,
           R: tl.constexpr, P: tl.constexpr, H: tl.constexpr, N: tl.constexpr):
    """One block: one token, H heads, one split of its slots; an online softmax over N rows."""
    token, head_block, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    head = head_block * H + tl.arange(0, H)
    latent, rope = tl.arange(0, R), tl.arange(0, P)
    inside = head < heads
    q_row = q + (token * heads + head)[:, None] * (R + P)
    q_latent = tl.load(q_row + latent[None, :], mask=inside[:, None], other=0.0)
    q_rope = tl.load(q_row + R + rope[None, :], mask=inside[:, None], other=0.0)
    largest = tl.full([H], -1e30, tl.float32)
    total = tl.zeros([H], tl.float32)
    out = tl.zeros([H, R], tl.float32)
    first = split * tiles_per_split * N
    for begin in range(first, tl.minimum(first + tiles_per_split * N, topk), N):
        at = begin + tl.arange(0, N)
        slot = tl.load(slots + token.to(tl.int64) * topk + at, mask=at < topk, other=-1)
        slot = slot.to(tl.int64)
        there = slot >= 0
        row = rows + slot[:, None] * (R + P)
        k_latent = tl.load(row + latent[None, :], mask=there[:, None], other=0.0)
        k_rope = tl.load(row + R + rope[None, :], mask=there[:, None], other=0.0)
        score = (tl.dot(q_latent, tl.trans(k_latent)) + tl.dot(q_rope, tl.trans(k_rope))) * scale
        score = tl.where(there[None, :], score, -float("inf"))
        new_largest = tl.maximum(largest, tl.max(score, 1))
        shrink = tl.exp(largest - new_largest)
        weight = tl.exp(score - new_largest[:, None])
        total = total * shrink + tl.sum(weight, 1)
        out = out * shrink[:, None] + tl.dot(weight.to(tl.bfloat16), k_latent)
        largest = new_largest
    splits = tl.num_programs(2)
    place = (token * splits + split) * heads + head
    tl.store(partial + place[:, None] * R + latent[None, :], out / total[:, None],
             mask=inside[:, None])
    tl.store(sums + place, largest + tl.log(total), mask=inside)


@triton.jit
def merge(partial, sums, out, heads, splits, R: tl.constexpr):
    token, head = tl.program_id(0), tl.program_id(1)
    latent = tl.arange(0, R)
    largest, total = -float("inf"), 0.0
    mean = tl.zeros([R], tl.float32)
    for split in range(splits):
        place = (token * splits + split) * heads + head
        lse = tl.load(sums + place)
        new_largest = tl.maximum(largest, lse)
        shrink, weight = tl.exp(largest - new_largest), tl.exp(lse - new_largest)
        mean = mean * shrink + weight * tl.load(partial + place * R + latent)
        total = total * shrink + weight
        largest = new_largest
    tl.store(out + (token * heads + head) * R + latent, mean / total)


def median_us(calls, replays=15):
    """Median time of one call: a graph of all of them, replayed."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        calls[0]()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for call in calls:
            call()
    times = []
    for replay in range(2 + replays):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if replay >= 2:
            times.append(begin.elapsed_time(end) * 1e3 / len(calls))
    return sorted(times)[len(times) // 2]


class Attention:
    """Random rows, and random slots for each input set."""

    def __init__(self):
        self.rows = torch.randn(POOL_SLOTS, WIDTH, device="cuda", dtype=torch.bfloat16)

    def slots(self, tokens, topk, context, index):
        if tokens >= 1024:  # prefill: one context, causal
            visible = torch.arange(context - tokens, context, device="cuda")[:, None] + 1
            return torch.cat([
                torch.argsort(torch.rand(len(v), context, device="cuda").masked_fill_(
                    torch.arange(context, device="cuda") >= v, 2.0), 1)[:, :topk].int()
                for v in visible.split(256)])
        request = (torch.arange(tokens, device="cuda") + index * tokens) % (POOL_SLOTS // context)
        random = torch.argsort(torch.rand(tokens, context, device="cuda"), 1)[:, :topk]
        return (random + request[:, None] * context).int()

    def call(self, q, slots, out, splits, tile_heads, tile_rows, warps):
        tokens, heads, _ = q.shape
        topk = slots.shape[1]
        tiles = triton.cdiv(topk, tile_rows)
        per_split = triton.cdiv(tiles, splits)
        splits = triton.cdiv(tiles, per_split)
        partial = torch.empty(tokens, splits, heads, RANK, device="cuda")
        sums = torch.empty(tokens, splits, heads, device="cuda")
        attend[(tokens, triton.cdiv(heads, tile_heads), splits)](
            q, self.rows, slots, partial, sums, heads, topk, per_split, SCALE,
            R=RANK, P=ROPE, H=tile_heads, N=tile_rows, num_warps=warps, num_stages=2)
        merge[(tokens, heads)](partial, sums, out, heads, splits, R=RANK)

    def check(self, q, slots, out):
        picked = self.rows[slots[0].long()].float()
        weight = torch.softmax(q[0].float() @ picked.T * SCALE, -1)
        want = weight @ picked[:, :RANK]
        error = ((out[0].float() - want).norm() / want.norm()).item()
        if not error < 1e-2:
            sys.exit(f"the baseline is wrong: relative error {error}")

    def time(self, case):
        if case["format"] != "bf16" or case["selection"] != "sparse":
            return None
        heads, tokens, topk, context = (case[k] for k in ("heads", "tokens", "topk", "context"))
        count = 1 if tokens >= 1024 else max(2, min(48, COLD_BYTES // (tokens * topk * 1152) + 1))
        sets = []
        for index in range(count):
            q = torch.randn(tokens, heads, WIDTH, device="cuda", dtype=torch.bfloat16)
            sets.append((q, self.slots(tokens, topk, context, index), torch.empty(
                tokens, heads, RANK, device="cuda", dtype=torch.bfloat16)))
        best = None
        for splits in [s for s in (1, 4, 16, 32) if s * tokens <= 1024 or s == 1]:
            for tile_heads, tile_rows, warps in ((16, 32, 4), (64, 32, 8)):
                if tile_heads > max(16, heads):
                    continue
                calls = [lambda s=s: self.call(*s, splits, tile_heads, tile_rows, warps)
                         for s in sets]
                try:
                    calls[0]()
                except triton.runtime.errors.OutOfResources:
                    continue  # shared memory of a smaller chip
                self.check(*sets[0])
                took = median_us(calls)
                best = took if best is None else min(best, took)
        return best


def indexer_time(case):
    """Logits of every key for every query and head, weighted and summed; then torch.topk. The
    queries share one context, which is less to read than a context each."""
    if case["format"] != "bf16":
        return None
    heads, tokens, context, topk = (case[k] for k in ("heads", "tokens", "context", "topk"))
    k = torch.randn(context, 128, device="cuda", dtype=torch.bfloat16)
    q = torch.randn(tokens, heads, 128, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(tokens, heads, device="cuda")
    step = max(1, (1 << 31) // (heads * context * 4))

    def call():
        for begin in range(0, tokens, step):
            logits = torch.relu(q[begin:begin + step].reshape(-1, 128) @ k.T)
            scores = torch.einsum("thj,th->tj", logits.view(-1, heads, context).float(),
                                  weights[begin:begin + step])
            torch.topk(scores, min(topk, context), sorted=False)
    return median_us([call], 5)


def main():
    torch.manual_seed(0)
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    attention = None
    answer = []
    for case in cases:
        if case["operation"] == "attention":
            attention = attention or Attention()
            answer.append(attention.time(case))
        elif case["operation"] == "indexer":
            answer.append(indexer_time(case))
        else:
            answer.append(None)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
