#!/usr/bin/env python3
"""Writes the reference-*.gguf models and their goldens: random weights, float64 results (T-2.1).

    make_reference_data.py [--models tests/data/models] [--goldens tests/data/golden/reference]
    make_reference_data.py --search 200     lists seeds whose choices are safe from fp32 rounding

The outputs are committed; tests need this program only to make them again. What each file and array
is: tests/data/golden/README.md. Needs tools/requirements.txt.
"""

import argparse
import dataclasses
import pathlib
import sys

import gguf
import numpy as np
import reference_dsa as reference
from reference_dsa import Config, Mistakes

TOKENS = 96
WRONG_ROWS = np.arange(TOKENS - 16, TOKENS, dtype=np.int32)  # rows kept of results with a mistake
TOPKS = (2, 4, 8)
FOUR_LAYER_SEED = 320  # margin 1.6e-4, every row changed by 0.15 or more (--search)
SEVEN_LAYER_SEED = 664  # margin 3.1e-4, 1.3 or more
GLM52_CONTEXT = 1048576  # from here on a file without indexer.types has GLM-5.2's schedule

# Every width differs from the ones it could be mistaken for; head counts are odd on purpose.
FOUR_LAYERS = Config(
    layers=4,
    heads=3,
    qk_nope_head_dim=32,
    qk_rope_head_dim=16,
    v_head_dim=16,
    kv_lora_rank=48,
    leading_dense_layers=1,
    experts_used=2,
    routed_scale=2.5,
    normalise_weights=True,
    rms_eps=1e-5,
    rope_theta=10000.0,
    index_n_heads=3,
    index_head_dim=32,
    index_topk=4,
    indexer_full=[True] * 4,
)
SEVEN_LAYERS = dataclasses.replace(
    FOUR_LAYERS,
    layers=7,
    heads=2,
    qk_nope_head_dim=16,
    kv_lora_rank=32,
    index_n_heads=2,
    indexer_full=[True] * 7,
)
GLM52_SCHEDULE = [True, True, True, False, False, False, True]
SHARED = [True, False, True, False]


@dataclasses.dataclass
class Widths:
    """Of a model, where the forward pass reads them off the weights."""

    hidden: int = 32
    q_lora_rank: int = 16
    dense_ffn: int = 80
    experts: int = 6
    expert_ffn: int = 16


MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n")]
CONTROL = [
    "<|endoftext|>",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
]
TAGS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<pad>",
]  # parsed, but printed as text
CHAT_TEMPLATE = (
    "[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|></think>{% endif %}"
)


def byte_tokens():
    """The 256 byte tokens as byte-level BPE spells them: printable bytes as themselves, the
    others as the code points from 256 up; printable ones first, as in published vocabularies."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) for b in printable] + [chr(256 + i) for i in range(len(others))]


def vocabulary():
    tokens = byte_tokens() + [a + b for a, b in MERGES] + CONTROL + TAGS
    types = [1] * (256 + len(MERGES)) + [3] * len(CONTROL) + [4] * len(TAGS)
    return tokens, types


def bf16_values(x):
    """Nearest bfloat16 values, held in F32: half of the bytes are zero, so they compress well."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(np.float64)


def layer_shapes(cfg, widths, layer):
    """Name -> shape of one layer, outer to inner; in the order in which they are drawn."""
    d, rq, rank, heads = widths.hidden, widths.q_lora_rank, cfg.kv_lora_rank, cfg.heads
    n, r, v = cfg.qk_nope_head_dim, cfg.qk_rope_head_dim, cfg.v_head_dim
    shapes = {
        "attn_norm.weight": (d,),
        "attn_q_a.weight": (rq, d),
        "attn_q_a_norm.weight": (rq,),
        "attn_q_b.weight": (heads * (n + r), rq),
        "attn_kv_a_mqa.weight": (rank + r, d),
        "attn_kv_a_norm.weight": (rank,),
        "attn_k_b.weight": (heads, rank, n),
        "attn_v_b.weight": (heads, v, rank),
        "attn_output.weight": (d, heads * v),
        "indexer.attn_q_b.weight": (cfg.index_n_heads * cfg.index_head_dim, rq),
        "indexer.attn_k.weight": (cfg.index_head_dim, d),
        "indexer.k_norm.weight": (cfg.index_head_dim,),
        "indexer.k_norm.bias": (cfg.index_head_dim,),
        "indexer.proj.weight": (cfg.index_n_heads, d),
        "ffn_norm.weight": (d,),
    }
    if layer < cfg.leading_dense_layers:
        f = widths.dense_ffn
        return shapes | {
            "ffn_gate.weight": (f, d),
            "ffn_up.weight": (f, d),
            "ffn_down.weight": (d, f),
        }
    e, f = widths.experts, widths.expert_ffn
    return shapes | {
        "ffn_gate_inp.weight": (e, d),
        "exp_probs_b.bias": (e,),
        "ffn_gate_exps.weight": (e, f, d),
        "ffn_up_exps.weight": (e, f, d),
        "ffn_down_exps.weight": (e, d, f),
        "ffn_gate_shexp.weight": (f, d),
        "ffn_up_shexp.weight": (f, d),
        "ffn_down_shexp.weight": (d, f),
    }


def draw(generator, name, shape):
    x = generator.standard_normal(shape)
    if name.endswith("norm.weight"):
        return bf16_values(1 + 0.1 * x)
    if name.endswith(".bias"):
        return bf16_values(0.2 * x)
    # attn_k_b is stored transposed: its input width is the rank, the middle dimension.
    columns = shape[1] if "attn_k_b" in name else shape[-1]
    return bf16_values(x * (1.0 if "token_embd" in name else 1.5 * columns**-0.5))


def make_weights(cfg, widths, seed):
    generator = np.random.default_rng(seed)
    vocab = len(vocabulary()[0])
    shapes = {
        "token_embd.weight": (vocab, widths.hidden),
        "output_norm.weight": (widths.hidden,),
        "output.weight": (vocab, widths.hidden),
    }
    for layer in range(cfg.layers):
        for name, shape in layer_shapes(cfg, widths, layer).items():
            shapes[f"blk.{layer}.{name}"] = shape
    return {name: draw(generator, name, shape) for name, shape in shapes.items()}


def make_ids(seed):
    return np.random.default_rng(seed + 1_000_000).integers(0, 256, TOKENS)


# --- variants of a file ---------------------------------------------------------------------------


def without_shared_indexers(weights, full):
    return {
        name: x
        for name, x in weights.items()
        if not any(f"blk.{i}.indexer." in name for i, f in enumerate(full) if not f)
    }


def with_garbage_indexers(weights, full, seed):
    """Indexer tensors on shared layers, as in some published files; here with other values."""
    generator = np.random.default_rng(seed + 2_000_000)
    out = dict(weights)
    for name, x in weights.items():
        if any(f"blk.{i}.indexer." in name for i, f in enumerate(full) if not f):
            out[name] = bf16_values(10 * generator.standard_normal(x.shape))
    return out


def with_fused_kv_b(cfg, weights):
    out = {}
    for name, x in weights.items():
        if name.endswith("attn_k_b.weight"):
            values = weights[name.replace("attn_k_b", "attn_v_b")]
            both = np.concatenate(
                [x.transpose(0, 2, 1), values], axis=1
            )  # per head: K rows, V rows
            out[name.replace("attn_k_b", "attn_kv_b")] = both.reshape(-1, cfg.kv_lora_rank)
        elif not name.endswith("attn_v_b.weight"):
            out[name] = x
    return out


def with_odd_names(weights):
    """Tensors that are no part of the model, named to catch renaming by substring."""
    extra = [
        "weight",
        "blk.0.qweight",
        "blk.1.indexer.weights_proj.weight",
        "blk.2.attn_q_b.weight_scale_inv",
        "blk.3.weight.weight",
        "blk.0.attn_norm.qweight_type",
    ]
    return weights | {name: np.full((16,), 1e30) for name in extra}


# --- writing --------------------------------------------------------------------------------------


def add_hyperparameters(writer, cfg, widths, context, types):
    def u32(key, value):
        writer.add_uint32(f"glm-dsa.{key}", value)

    rope_dim, vocab = cfg.qk_rope_head_dim, len(vocabulary()[0])
    for key, value in {
        "block_count": cfg.layers,
        "context_length": context,
        "embedding_length": widths.hidden,
        "feed_forward_length": widths.dense_ffn,
        "vocab_size": vocab,
        "attention.head_count": cfg.heads,
        "attention.head_count_kv": 1,
        "attention.key_length": cfg.kv_lora_rank + rope_dim,
        "attention.value_length": cfg.kv_lora_rank,
        "attention.key_length_mla": cfg.qk_nope_head_dim + rope_dim,
        "attention.value_length_mla": cfg.v_head_dim,
        "attention.q_lora_rank": widths.q_lora_rank,
        "attention.kv_lora_rank": cfg.kv_lora_rank,
        "rope.dimension_count": rope_dim,
        "leading_dense_block_count": cfg.leading_dense_layers,
        "expert_count": widths.experts,
        "expert_used_count": cfg.experts_used,
        "expert_shared_count": 1,
        "expert_feed_forward_length": widths.expert_ffn,
        "expert_group_count": 1,
        "expert_group_used_count": 1,
        "expert_gating_func": 2,
        "attention.indexer.head_count": cfg.index_n_heads,
        "attention.indexer.key_length": cfg.index_head_dim,
        "attention.indexer.top_k": cfg.index_topk,
    }.items():
        u32(key, value)
    writer.add_float32("glm-dsa.attention.layer_norm_rms_epsilon", cfg.rms_eps)
    writer.add_float32("glm-dsa.rope.freq_base", cfg.rope_theta)
    writer.add_float32("glm-dsa.expert_weights_scale", cfg.routed_scale)
    writer.add_bool("glm-dsa.expert_weights_norm", cfg.normalise_weights)
    if types is not None:
        writer.add_array("glm-dsa.attention.indexer.types", types)
    if not cfg.indexer_rope_interleave:
        writer.add_bool("glm-dsa.attention.indexer.rope_interleave", False)


def add_tokenizer(writer):
    tokens, types = vocabulary()
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "glm4")
    writer.add_array("tokenizer.ggml.tokens", tokens)
    writer.add_array("tokenizer.ggml.token_type", types)
    writer.add_array("tokenizer.ggml.merges", [f"{a} {b}" for a, b in MERGES])
    for key, token in {
        "eos": "<|endoftext|>",
        "padding": "<|endoftext|>",
        "bos": "[gMASK]",
        "eot": "<|user|>",
        "unknown": "<|endoftext|>",
        "eom": "<|observation|>",
    }.items():
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", tokens.index(token))
    writer.add_string("tokenizer.chat_template", CHAT_TEMPLATE)


def write_gguf(path, cfg, widths, weights, context=4096, types=None):
    writer = gguf.GGUFWriter(str(path), "glm-dsa")
    writer.add_string("general.type", "model")
    writer.add_string("general.name", path.stem)
    writer.add_uint32("general.file_type", 0)
    writer.add_uint32("general.quantization_version", 2)
    add_hyperparameters(writer, cfg, widths, context, types)
    add_tokenizer(writer)
    for name, x in weights.items():
        writer.add_tensor(name, np.ascontiguousarray(x, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{path} {path.stat().st_size}")


def write_golden(path, cfg, result, ids, extra=None):
    """float64 results rounded to float32; margins stay float64."""
    arrays = {
        "ids": ids.astype(np.int32),
        "top_k": np.array([cfg.index_topk], dtype=np.int32),
        "indexer_full": np.array(cfg.indexer_full),
        "logits": result["logits"].astype(np.float32),
    }
    for number, record in enumerate(result["layers"]):
        layer = f"layer{number}/"
        arrays[layer + "selected"] = np.packbits(record["mask"], axis=1, bitorder="little")
        arrays[layer + "attn_out"] = record["attn_out"].astype(np.float32)
        arrays[layer + "out"] = record["out"].astype(np.float32)
        if "scores" in record:
            arrays[layer + "scores"] = record["scores"].astype(np.float32)
            arrays[layer + "margin"] = record["margin"]
            arrays[layer + "tied"] = record["tied"]
    np.savez_compressed(path, **arrays, **(extra or {}))
    print(f"{path} {path.stat().st_size}")


def wrong_logits(cfg, weights, ids):
    arrays = {"wrong_rows": WRONG_ROWS}
    for name, mistakes in {
        "wrong_flavour": Mistakes(indexer_flavour=True),
        "wrong_slice": Mistakes(indexer_slice=True),
        "wrong_scale": Mistakes(latent_scale=True),
        "wrong_main_flavour": Mistakes(main_flavour=True),
        "dense": Mistakes(dense=True),
    }.items():
        logits = reference.forward(cfg, weights, ids, mistakes)["logits"]
        arrays["logits_" + name] = logits[WRONG_ROWS].astype(np.float32)
    return arrays


def four_layer_cases():
    """(golden's name, Config): the same weights under each flavour and top-k, and with sharing."""
    cases = []
    for topk in TOPKS:
        cfg = dataclasses.replace(FOUR_LAYERS, index_topk=topk)
        cases.append((f"interleaved-k{topk}", cfg))
        cases.append(
            (f"half-split-k{topk}", dataclasses.replace(cfg, indexer_rope_interleave=False))
        )
    cases.append(("shared-k4", dataclasses.replace(FOUR_LAYERS, indexer_full=SHARED)))
    return cases


def seven_layer_cases():
    return [
        ("schedule-glm52", dataclasses.replace(SEVEN_LAYERS, indexer_full=GLM52_SCHEDULE)),
        ("schedule-full", SEVEN_LAYERS),
    ]


def write_four_layer_files(models, goldens):
    cfg, widths, seed = FOUR_LAYERS, Widths(), FOUR_LAYER_SEED
    weights, ids = make_weights(cfg, widths, seed), make_ids(seed)
    half_split = dataclasses.replace(cfg, indexer_rope_interleave=False)
    all_full = [True] * cfg.layers
    garbage = with_garbage_indexers(weights, SHARED, seed)
    for name, model, tensors, types in [
        ("interleaved", cfg, weights, all_full),
        ("half-split", half_split, weights, all_full),
        ("fused-kv-b", cfg, with_fused_kv_b(cfg, weights), all_full),
        ("odd-names", cfg, with_odd_names(weights), all_full),
        ("shared", cfg, without_shared_indexers(weights, SHARED), SHARED),
        ("shared-duplicates", cfg, garbage, SHARED),
    ]:
        write_gguf(models / f"reference-{name}.gguf", model, widths, tensors, types=types)
    for name, case in four_layer_cases():
        extra = wrong_logits(case, weights, ids)
        if name.startswith("shared"):
            own = dataclasses.replace(case, indexer_full=all_full)
            wrong = reference.forward(own, garbage, ids)["logits"]
            extra["logits_wrong_own_indexer"] = wrong[WRONG_ROWS].astype(np.float32)
        write_golden(
            goldens / f"{name}.npz", case, reference.forward(case, weights, ids), ids, extra
        )
    dense = dataclasses.replace(cfg, index_topk=TOKENS)
    write_golden(
        goldens / "interleaved-dense.npz", dense, reference.forward(dense, weights, ids), ids
    )


def write_seven_layer_files(models, goldens):
    cfg, widths, seed = SEVEN_LAYERS, Widths(experts=3), SEVEN_LAYER_SEED
    weights, ids = make_weights(cfg, widths, seed), make_ids(seed)
    write_gguf(models / "reference-schedule.gguf", cfg, widths, weights, context=GLM52_CONTEXT)
    for name, case in seven_layer_cases():
        write_golden(goldens / f"{name}.npz", case, reference.forward(case, weights, ids), ids)


def write_micro_goldens(models, goldens):
    """The micro models again, ties decided as the engine does: lower index first (README.md)."""
    for name in ("micro-glm-dsa", "micro-glm-dsa-shared", "micro-deepseek-v32"):
        cfg, weights = reference.read_gguf(models / f"{name}-bf16.gguf")
        ids = np.load(goldens.parent / "micro" / f"{name}.npz")["ids"].astype(np.int64)
        write_golden(goldens / f"{name}.npz", cfg, reference.forward(cfg, weights, ids), ids)


# --- choice of the seeds --------------------------------------------------------------------------


def safety(cases, weights, ids):
    """Smallest margin of any choice (key, expert), and smallest change of a row by a mistake."""
    margin, change = np.inf, np.inf
    for _, cfg in cases:
        result = reference.forward(cfg, weights, ids)
        for record in result["layers"]:
            margin = min([margin, *record.get("margin", []), *record.get("router_margin", [])])
        if margin < 1e-4:
            return margin, 0.0
        for name, wrong in wrong_logits(cfg, weights, ids).items():
            if name != "wrong_rows":
                change = min(change, np.abs(wrong - result["logits"][WRONG_ROWS]).max(axis=1).min())
    return margin, change


def search(count):
    for label, cfg, widths, cases in [
        ("four layers", FOUR_LAYERS, Widths(), four_layer_cases()),
        ("seven layers", SEVEN_LAYERS, Widths(experts=3), seven_layer_cases()),
    ]:
        for seed in range(count):
            margin, change = safety(cases, make_weights(cfg, widths, seed), make_ids(seed))
            if margin >= 1e-4:
                print(f"{label}: seed {seed} margin {margin:.2e} change {change:.2e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    data = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
    parser.add_argument("--models", type=pathlib.Path, default=data / "models")
    parser.add_argument("--goldens", type=pathlib.Path, default=data / "golden" / "reference")
    parser.add_argument("--search", type=int, metavar="COUNT", help="try seeds 0 to COUNT - 1")
    args = parser.parse_args()
    if args.search:
        return search(args.search) or 0
    args.goldens.mkdir(parents=True, exist_ok=True)
    write_four_layer_files(args.models, args.goldens)
    write_seven_layer_files(args.models, args.goldens)
    write_micro_goldens(args.models, args.goldens)
    return 0


if __name__ == "__main__":
    sys.exit(main())
