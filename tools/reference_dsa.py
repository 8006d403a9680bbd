#!/usr/bin/env python3
"""The glm-dsa / deepseek32 forward pass in NumPy float64, written from the papers.

It is the oracle of the engine's tests (T-2.1): it shares no code with the engine, attends in the
plain multi-head form (the engine absorbs W_UK and W_UV), scores every key and keeps no cache. Slow
and short on purpose. Sources: DeepSeek-V2 (arXiv:2405.04434) for MLA, DeepSeek-V3
(arXiv:2412.19437) for routing, DeepSeek-V3.2 for the indexer.

    reference_dsa.py --check-gguf MODEL.gguf --golden GOLDEN.npz [--prompt NAME] [--limit N]

compares this program with logits (and selected sets, where the golden has them) of another
implementation. Needs numpy and, to read models, the `gguf` package (tools/requirements.txt).

Array shapes are outer to inner: T tokens, H heads, n/r qk_nope/qk_rope_head_dim, v v_head_dim,
R kv_lora_rank. Weights keep their GGUF names; a GGUF {in, out} matrix is [out, in] here.
"""

import argparse
import dataclasses
import sys

import numpy as np

INDEXER_NORM_EPS = 1e-6  # fixed in the published code; GGUF has no key for it


@dataclasses.dataclass
class Config:
    layers: int
    heads: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    kv_lora_rank: int
    leading_dense_layers: int
    experts_used: int
    routed_scale: float
    normalise_weights: bool
    rms_eps: float
    rope_theta: float
    index_n_heads: int
    index_head_dim: int
    index_topk: int
    indexer_full: list  # one bool a layer; False: the layer uses the selection of the last full one
    indexer_rope_interleave: bool = True
    expert_groups: int = 1
    expert_groups_used: int = 1
    latent_norm_eps: float | None = None  # of q_a_norm and kv_a_norm; None: rms_eps
    yarn: dict | None = None  # factor, original_context, beta_fast, beta_slow, log_multiplier


@dataclasses.dataclass
class Mistakes:
    """Errors that real engines have made. Tests must be far from the logits each of them gives."""

    indexer_flavour: bool = False  # the other pairing of RoPE dimensions in the indexer
    indexer_slice: bool = False  # RoPE on the last dimensions of the indexer heads, not the first
    latent_scale: bool = False  # softmax scale 1/sqrt(R + r) instead of 1/sqrt(n + r)
    main_flavour: bool = False  # half-split RoPE in the main attention
    dense: bool = False  # no selection


def rms_norm(x, weight, eps):
    return weight * x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def layer_norm(x, weight, bias, eps):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return weight * centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps) + bias


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def mlp(x, gate, up, down):
    g = x @ gate.T
    return (g * sigmoid(g) * (x @ up.T)) @ down.T


def inverse_frequencies(cfg):
    """[r/2]; under YaRN a blend of the plain and the stretched frequencies."""
    r = cfg.qk_rope_head_dim
    plain = cfg.rope_theta ** (-np.arange(0, r, 2, dtype=np.float64) / r)
    if cfg.yarn is None:
        return plain

    def correction(beta):
        turns = cfg.yarn["original_context"] / (beta * 2 * np.pi)
        return r * np.log(turns) / (2 * np.log(cfg.rope_theta))

    low = max(np.floor(correction(cfg.yarn["beta_fast"])), 0)
    high = min(np.ceil(correction(cfg.yarn["beta_slow"])), r - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(r // 2) - low) / (high - low), 0, 1)
    return plain * (1 - ramp) + plain / cfg.yarn["factor"] * ramp


def rope(x, frequencies, interleaved):
    """x [T, ..., r], row t at position t. Interleaved: pairs (2i, 2i+1); else (i, i + r/2)."""
    tokens, r = x.shape[0], x.shape[-1]
    angle = np.arange(tokens, dtype=np.float64)[:, None] * frequencies
    angle = angle.reshape([tokens] + [1] * (x.ndim - 2) + [r // 2])
    first = slice(0, r, 2) if interleaved else slice(0, r // 2)
    second = slice(1, r, 2) if interleaved else slice(r // 2, r)
    out = np.empty_like(x)
    out[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
    out[..., second] = x[..., first] * np.sin(angle) + x[..., second] * np.cos(angle)
    return out


def softmax_scale(cfg, mistakes):
    nope = cfg.kv_lora_rank if mistakes.latent_scale else cfg.qk_nope_head_dim
    scale = (nope + cfg.qk_rope_head_dim) ** -0.5
    if cfg.yarn is not None and cfg.yarn["factor"] > 1:
        scale *= (1 + cfg.yarn["log_multiplier"] * np.log(cfg.yarn["factor"])) ** 2
    return scale


def indexer_scores(cfg, w, normed, q_latent, mistakes):
    """(scores [T, T] with -inf above the diagonal, dots [T, Hi, T] before the ReLU)."""
    tokens, heads, dim, r = len(normed), cfg.index_n_heads, cfg.index_head_dim, cfg.qk_rope_head_dim
    frequencies = inverse_frequencies(cfg)
    interleaved = cfg.indexer_rope_interleave != mistakes.indexer_flavour
    rotated = slice(dim - r, dim) if mistakes.indexer_slice else slice(0, r)
    q = (q_latent @ w["indexer.attn_q_b.weight"].T).reshape(tokens, heads, dim)
    k = layer_norm(
        normed @ w["indexer.attn_k.weight"].T,
        w["indexer.k_norm.weight"],
        w["indexer.k_norm.bias"],
        INDEXER_NORM_EPS,
    )
    q[..., rotated] = rope(q[..., rotated], frequencies, interleaved)
    k[..., rotated] = rope(k[..., rotated], frequencies, interleaved)
    head_weights = (normed @ w["indexer.proj.weight"].T) * heads**-0.5 * dim**-0.5
    dots = np.einsum("thd,jd->thj", q, k)
    scores = np.einsum("th,thj->tj", head_weights, np.maximum(dots, 0))
    scores[np.triu_indices(tokens, 1)] = -np.inf
    return scores, dots


def select(scores, topk):
    """Mask [T, T] of the topk best visible keys of each row; the lower index first among equals."""
    tokens = len(scores)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :topk]
    mask = np.zeros((tokens, tokens), dtype=bool)
    np.put_along_axis(mask, best, True, axis=1)
    return mask & np.tri(tokens, dtype=bool)


def selection_margin(scores, dots, topk):
    """How safe each row's set is [T]: the gap below the last chosen score, inf where all visible
    keys are chosen. `tied` [T] marks exact ties across the cut, which lower index first decides;
    there the margin is the smaller of the gap to the nearest other score and the distance from
    zero of the dot products that the ReLU made equal."""
    tokens = len(scores)
    margin, tied = np.full(tokens, np.inf), np.zeros(tokens, dtype=bool)
    for t in range(topk, tokens):
        row = np.sort(scores[t, : t + 1])[::-1]
        last = row[topk - 1]
        tied[t] = last == row[topk]
        margin[t] = last - row[topk]
        if tied[t]:
            others = np.abs(row - last)[row != last]
            equal = np.flatnonzero(scores[t, : t + 1] == last)
            margin[t] = min(np.min(others, initial=np.inf), np.min(np.abs(dots[t][:, equal])))
    return margin, tied


def split_kv_b(cfg, w):
    """W_UK [H, n, R] and W_UV [H, v, R] from either form of the file."""
    n, v, rank = cfg.qk_nope_head_dim, cfg.v_head_dim, cfg.kv_lora_rank
    if "attn_kv_b.weight" in w:
        both = w["attn_kv_b.weight"].reshape(cfg.heads, n + v, rank)
        return both[:, :n], both[:, n:]
    return w["attn_k_b.weight"].transpose(0, 2, 1), w["attn_v_b.weight"]


def attention(cfg, w, normed, mask, q_latent, mistakes):
    """MLA in its multi-head form over the keys of `mask` [T, T]; returns [T, D]."""
    tokens, n, rank = len(normed), cfg.qk_nope_head_dim, cfg.kv_lora_rank
    q_up = w["attn_q_b.weight"] if "attn_q_b.weight" in w else w["attn_q.weight"]
    q = (q_latent @ q_up.T).reshape(tokens, cfg.heads, n + cfg.qk_rope_head_dim)
    kv = normed @ w["attn_kv_a_mqa.weight"].T
    latent = rms_norm(kv[:, :rank], w["attn_kv_a_norm.weight"], cfg.latent_norm_eps or cfg.rms_eps)
    frequencies = inverse_frequencies(cfg)
    q_rope = rope(q[..., n:], frequencies, not mistakes.main_flavour)
    k_rope = rope(kv[:, rank:], frequencies, not mistakes.main_flavour)
    w_uk, w_uv = split_kv_b(cfg, w)
    k_nope = np.einsum("jc,hdc->hjd", latent, w_uk)
    values = np.einsum("jc,hdc->hjd", latent, w_uv)
    logits = np.einsum("thd,hjd->htj", q[..., :n], k_nope) + np.einsum(
        "thd,jd->htj", q_rope, k_rope
    )
    logits = np.where(mask, logits * softmax_scale(cfg, mistakes), -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    heads = np.einsum("htj,hjd->thd", weights, values)
    return heads.reshape(tokens, -1) @ w["attn_output.weight"].T


def route(cfg, w, x):
    """(expert ids [T, used] best first, weights [T, used], margin [T] of the choice)."""
    probability = sigmoid(x @ w["ffn_gate_inp.weight"].T)
    choice = probability + w.get("exp_probs_b.bias", 0.0)
    if cfg.expert_groups > 1:
        grouped = choice.reshape(len(x), cfg.expert_groups, -1)
        group_score = np.sort(grouped, axis=-1)[..., -2:].sum(axis=-1)
        kept = np.argsort(-group_score, axis=1, kind="stable")[:, : cfg.expert_groups_used]
        dropped = np.ones_like(group_score, dtype=bool)
        np.put_along_axis(dropped, kept, False, axis=1)
        choice = np.where(dropped[..., None], -np.inf, grouped).reshape(choice.shape)
    order = np.argsort(-choice, axis=1, kind="stable")
    ids = order[:, : cfg.experts_used]
    ranked = np.take_along_axis(choice, order, axis=1)
    weights = np.take_along_axis(probability, ids, axis=1)
    if cfg.normalise_weights:
        weights = weights / (weights.sum(axis=1, keepdims=True) + 1e-20)
    return (
        ids,
        weights * cfg.routed_scale,
        ranked[:, cfg.experts_used - 1] - ranked[:, cfg.experts_used],
    )


def moe(cfg, w, x):
    ids, weights, margin = route(cfg, w, x)
    out = mlp(x, w["ffn_gate_shexp.weight"], w["ffn_up_shexp.weight"], w["ffn_down_shexp.weight"])
    for t in range(len(x)):
        for expert, weight in zip(ids[t], weights[t]):
            out[t] += weight * mlp(
                x[t],
                w["ffn_gate_exps.weight"][expert],
                w["ffn_up_exps.weight"][expert],
                w["ffn_down_exps.weight"][expert],
            )
    return out, margin


def layer_weights(weights, layer):
    prefix = f"blk.{layer}."
    return {name[len(prefix) :]: x for name, x in weights.items() if name.startswith(prefix)}


def run_layer(cfg, weights, number, x, mask, mistakes=Mistakes()):
    """One layer over x [T, D]. `mask`: the selection so far. Returns (x, mask, record)."""
    w, record = layer_weights(weights, number), {}
    normed = rms_norm(x, w["attn_norm.weight"], cfg.rms_eps)
    q_latent = normed
    if "attn_q_a.weight" in w:
        q_latent = rms_norm(
            normed @ w["attn_q_a.weight"].T,
            w["attn_q_a_norm.weight"],
            cfg.latent_norm_eps or cfg.rms_eps,
        )
    if cfg.index_topk and cfg.indexer_full[number]:
        scores, dots = indexer_scores(cfg, w, normed, q_latent, mistakes)
        record["scores"] = scores
        record["margin"], record["tied"] = selection_margin(scores, dots, cfg.index_topk)
        if not mistakes.dense:
            mask = select(scores, cfg.index_topk)
    record["mask"] = mask
    record["attn_out"] = attention(cfg, w, normed, mask, q_latent, mistakes)
    x = x + record["attn_out"]
    normed = rms_norm(x, w["ffn_norm.weight"], cfg.rms_eps)
    if number < cfg.leading_dense_layers:
        x = x + mlp(normed, w["ffn_gate.weight"], w["ffn_up.weight"], w["ffn_down.weight"])
    else:
        ffn, record["router_margin"] = moe(cfg, w, normed)
        x = x + ffn
    record["out"] = x
    return x, mask, record


def forward(cfg, weights, ids, mistakes=Mistakes()):
    """A dict: logits [T, V] and `layers`, one dict a layer with mask, attn_out, out; of a layer
    with its own indexer also scores, margin, tied; of a layer with experts also router_margin."""
    x = weights["token_embd.weight"][ids]
    mask = np.tri(len(ids), dtype=bool)
    records = []
    for number in range(cfg.layers):
        x, mask, record = run_layer(cfg, weights, number, x, mask, mistakes)
        records.append(record)
    final = rms_norm(x, weights["output_norm.weight"], cfg.rms_eps)
    return {"layers": records, "logits": final @ weights["output.weight"].T}


# --- checking against another implementation's goldens --------------------------------------------


def indexer_schedule(get, layers):
    """Which layers run their own indexer; GLM-5.2's table if the file is silent at 1M context."""
    types = get("attention.indexer.types")
    if types is not None:
        return [bool(t) for t in types][:layers]
    if get("context_length") >= 1048576:
        return [i < 2 or (i - 2) % 4 == 0 for i in range(layers)]
    return [True] * layers


def config_from_metadata(arch, metadata):
    def get(key, default=None):
        return metadata.get(f"{arch}.{key}", default)

    yarn = None
    if get("rope.scaling.type") == "yarn":
        yarn = dict(
            factor=get("rope.scaling.factor"),
            original_context=get("rope.scaling.original_context_length"),
            beta_fast=get("rope.scaling.yarn_beta_fast", 32.0),
            beta_slow=get("rope.scaling.yarn_beta_slow", 1.0),
            log_multiplier=get("rope.scaling.yarn_log_multiplier", 0.0),
        )
    layers = get("block_count") - get("nextn_predict_layers", 0)
    rope_dim = get("rope.dimension_count")
    return Config(
        layers=layers,
        heads=get("attention.head_count"),
        qk_rope_head_dim=rope_dim,
        qk_nope_head_dim=get("attention.key_length_mla") - rope_dim,
        v_head_dim=get("attention.value_length_mla"),
        kv_lora_rank=get("attention.kv_lora_rank"),
        leading_dense_layers=get("leading_dense_block_count"),
        experts_used=get("expert_used_count"),
        routed_scale=get("expert_weights_scale", 1.0),
        normalise_weights=get("expert_weights_norm", False),
        rms_eps=get("attention.layer_norm_rms_epsilon"),
        rope_theta=get("rope.freq_base"),
        index_n_heads=get("attention.indexer.head_count", 0),
        index_head_dim=get("attention.indexer.key_length", 0),
        index_topk=get("attention.indexer.top_k", 0),
        indexer_full=indexer_schedule(get, layers),
        indexer_rope_interleave=get("attention.indexer.rope_interleave", arch == "glm-dsa"),
        expert_groups=get("expert_group_count", 1),
        expert_groups_used=get("expert_group_used_count", 1),
        yarn=yarn,
    )


def read_gguf(path):
    """(Config, weights in float64). Any type the gguf package can dequantise."""
    import gguf

    reader = gguf.GGUFReader(path)
    metadata = {
        key: field.contents()
        for key, field in reader.fields.items()
        if not key.startswith("tokenizer.")
    }
    weights = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        shape = [int(n) for n in reversed(tensor.shape)]
        weights[tensor.name] = np.asarray(values, dtype=np.float64).reshape(shape)
    return config_from_metadata(metadata["general.architecture"], metadata), weights


def compare_selected(golden, result, prefix):
    for number, record in enumerate(result["layers"]):
        key = f"{prefix}layer{number}/selected"
        if key not in golden:
            continue
        tokens = len(record["mask"])
        bits = np.unpackbits(golden[key], axis=1, bitorder="little")[:tokens, :tokens].astype(bool)
        swapped = (bits != record["mask"]).sum(axis=1) // 2
        line = f"layer {number}: {int((swapped > 0).sum())} rows of {tokens} select other keys"
        if "margin" in record and swapped.any():
            line += f" (their largest margin {record['margin'][swapped > 0].max():.2e})"
        print(line)


def check_each_layer(cfg, weights, hidden, tolerance):
    """Each layer on the golden's own input, so that a row where an exact tie was decided otherwise
    does not spoil the rows and layers after it. Untied rows must agree; `hidden`
    [layers + 1, T, D] as transformers returns it (the last one is after the final norm).
    Returns how many do not."""
    tokens, failures = hidden.shape[1], 0
    mask, tied, margin = (
        np.tri(tokens, dtype=bool),
        np.zeros(tokens, dtype=bool),
        np.full(tokens, np.inf),
    )
    for number in range(cfg.layers):
        x, mask, record = run_layer(cfg, weights, number, hidden[number].astype(np.float64), mask)
        if number + 1 == cfg.layers:
            x = rms_norm(x, weights["output_norm.weight"], cfg.rms_eps)
        tied, margin = record.get("tied", tied), record.get("margin", margin)
        difference = np.abs(x - hidden[number + 1]).max(axis=1)
        failed = ~tied & (difference > tolerance)
        decided_otherwise = int((tied & (difference > tolerance)).sum())
        failures += int(failed.sum())
        print(
            f"layer {number} alone: largest difference {difference[~tied].max():.2e} over "
            f"{(~tied).sum()} rows, {int(failed.sum())} above {tolerance:g}; "
            f"{int(tied.sum())} tied rows, of which {decided_otherwise} differ"
        )
        for row in np.flatnonzero(failed):
            print(f"  row {row}: {difference[row]:.2e}, margin {margin[row]:.2e}")
    return failures


def check(args):
    cfg, weights = read_gguf(args.check_gguf)
    cfg.latent_norm_eps = args.latent_norm_eps
    golden = np.load(args.golden)
    prefix = f"{args.prompt}/" if args.prompt else ""
    ids = golden[prefix + "ids"].astype(np.int64)[: args.limit]
    result = forward(cfg, weights, ids)
    compare_selected(golden, result, prefix)
    failures = 0
    if prefix + "hidden" in golden:
        failures = check_each_layer(cfg, weights, golden[prefix + "hidden"], args.tolerance)
    expected = golden.get(prefix + "logits", golden.get(prefix + "last_logits"))
    if expected is None:
        return failures
    logits = result["logits"] if expected.ndim == 2 else result["logits"][-1:]
    difference = np.abs(np.atleast_2d(expected)[: args.limit] - logits).max(axis=1)
    above = int((difference > args.tolerance).sum())
    print(
        f"{len(ids)} tokens end to end: largest difference of logits {difference.max():.2e} at row "
        f"{int(difference.argmax())}, median {np.median(difference):.2e}; {above} rows above "
        f"{args.tolerance:g}"
    )
    ties = any(record.get("tied", np.zeros(1)).any() for record in result["layers"])
    return failures if prefix + "hidden" in golden and ties else above


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check-gguf", required=True, metavar="MODEL.gguf")
    parser.add_argument(
        "--golden", required=True, metavar="GOLDEN.npz", help="holds ids and logits"
    )
    parser.add_argument("--prompt", help="prefix of the arrays' names, as in prompts.npz")
    parser.add_argument("--limit", type=int, help="only the first N tokens")
    parser.add_argument("--tolerance", type=float, default=5e-4)
    parser.add_argument(
        "--latent-norm-eps", type=float, help="of q_a_norm and kv_a_norm (default: the file's)"
    )
    args = parser.parse_args()
    return 1 if check(args) else 0


if __name__ == "__main__":
    sys.exit(main())
