"""topknot plan --catalog: what another engine would run a file with, and why not."""
import json

import pytest

from program import EXIT, MICRO, TEST_MODELS, TINY, succeed, topknot

COLUMNS = 100


def catalog_json(*arguments, code):
    done = topknot("plan", *arguments, "--json")
    assert done.returncode == code, done.err
    got = json.loads(done.out)
    assert list(got) == ["complete", "catalog", "model", "machine", "operations"]
    assert got["complete"] is (code == 0)
    return got


def candidates_of(got, operation):
    """Names in the order tried, each with its refusals as "what: needed / found"."""
    (found,) = [each for each in got["operations"] if each["operation"] == operation]
    for candidate in found["candidates"]:
        assert all(r["because"].endswith("]") for r in candidate["refusals"]), "each has its source"
    return {c["name"]: [f"{r['what']}: {r['needed']} / {r['found']}" for r in c["refusals"]]
            for c in found["candidates"]}


# The problem that this project began with: GLM-5 on eight SM120 cards in February 2026, head size
# 576, sparse, qk_nope_head_dim 192, in both precisions that were asked for. Row by row, what
# refused.
DENSE_ONLY = "selection: exactly dense / sparse"
NOT_TRIED = ("order: one of FLASH_ATTN_MLA, FLASHMLA, FLASHINFER_MLA, TRITON_MLA, "
             "FLASHMLA_SPARSE / ")
ORIGINAL_PROBLEM = {
    "FLASH_ATTN_MLA": [DENSE_ONLY, "sm: from 90 to 99 / 120"],
    "FLASHMLA": [DENSE_ONLY, "sm: from 90 to 109 / 120"],
    "FLASHINFER_MLA": [DENSE_ONLY, "sm: from 100 to 109 / 120",
                       "qk_nope_head_dim: exactly 128 / 192"],
    "TRITON_MLA": [DENSE_ONLY],
    "FLASHMLA_SPARSE": ["sm: from 90 to 109 / 120"],
    "FLASHINFER_MLA_SPARSE": [NOT_TRIED + "FLASHINFER_MLA_SPARSE", "sm: from 100 to 109 / 120",
                              "qk_nope_head_dim: exactly 128 / 192"],
    "CUTLASS_MLA": [NOT_TRIED + "CUTLASS_MLA", DENSE_ONLY, "page: exactly 128 / 64",
                    "sm: from 100 to 109 / 120"],
}


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_the_original_problem_row_by_row(published, dtype):
    arguments = ["-m", published("glm-5-ud-q4_k_xl"), "--devices", "rtx-pro-6000", "-tp", "8",
                 "--catalog", "vllm-2026-02", "--dtype", dtype]
    got = catalog_json(*arguments, code=1)
    expected = dict(ORIGINAL_PROBLEM)
    if dtype == "fp16":
        expected["FLASHMLA_SPARSE"] = ["dtype: exactly bf16 / f16",
                                       "kv_format: one of bf16, fp8_ds / f16",
                                       "sm: from 90 to 109 / 120"]
    tried = candidates_of(got, "attention")
    assert list(tried) == list(expected), "in the order of that version"
    assert tried == expected
    assert [each["chosen"] for each in got["operations"]] == [None, None, None]
    assert candidates_of(got, "indexer_scores") == {
        "DEEP_GEMM": ["sm: one of 90, 100, 103 / 120"]}
    assert "architecture: exactly deepseek2 / glm-dsa" in candidates_of(got, "weights")["gguf"]
    asked = got["operations"][0]["asked"]
    for fact in ["sm=120", "selection=sparse", "heads=8", "head_size=576", "qk_nope_head_dim=192",
                 "topk=2048", "tensor_ranks=8", "architecture=glm-dsa", "weights=gguf"]:
        assert f" {fact}" in f" {asked}"
    assert got["machine"]["tensor_parallel_size"] == 8
    text = topknot("plan", *arguments)
    assert text.returncode == 1
    assert "no implementation of attention, indexer_scores, weights takes this" in text.out
    for name in expected:
        assert f"{name}: refused" in text.out
    assert max(len(line) for line in text.out.splitlines()) <= COLUMNS


def test_in_september_rows_of_fp8_are_needed(published):
    arguments = ["-m", published("glm-5-ud-q4_k_xl"), "--devices", "rtx-pro-6000", "-tp", "8",
                 "--catalog", "vllm-2026-09"]
    name = "FLASHINFER_MLA_SPARSE_SM120"
    rows = catalog_json(*arguments, code=1)
    assert candidates_of(rows, "attention")[name] == ["kv_format: one of fp8_ds, fp8_e4m3 / bf16"]
    packed = catalog_json(*arguments, "--kv-cache-dtype", "fp8_ds", code=1)
    assert packed["operations"][0]["chosen"] == name
    half = catalog_json(*arguments, "--kv-cache-dtype", "fp8_ds", "--dtype", "fp16", code=1)
    assert candidates_of(half, "attention")[name] == ["dtype: exactly bf16 / f16"]


def test_the_exit_code_is_0_only_when_every_operation_has_a_choice(published):
    arguments = ["-m", published("glm-5-ud-q4_k_xl"), "--devices", "rtx-pro-6000",
                 "--catalog", "llama.cpp-2026-08"]
    got = catalog_json(*arguments, code=0)
    assert [each["chosen"] for each in got["operations"]] == ["CUDA n_kv_max", "fused indexer",
                                                              "gguf"]
    split = catalog_json(*arguments, "-tp", "8", code=1)
    assert [each["chosen"] for each in split["operations"]] == [None, "fused indexer", "gguf"]
    assert "memory was not asked about" in succeed("plan", *arguments).out


def test_a_named_backend_of_that_engine_is_its_choice_or_refused(published):
    arguments = ["-m", published("glm-5-ud-q4_k_xl"), "--devices", "rtx-pro-6000",
                 "--catalog", "llama.cpp-2026-08", "--attention-backend"]
    got = catalog_json(*arguments, "CUDA masked", code=0)
    assert got["operations"][0]["chosen"] == "CUDA masked"
    assert catalog_json(*arguments, "CPU masked", code=1)["operations"][0]["chosen"] is None
    wrong = topknot("plan", *arguments, "CUDA maskd")
    assert wrong.returncode == EXIT["not_found"] and "'CUDA masked'" in wrong.err


def test_a_dense_model_needs_no_indexer():
    model = TEST_MODELS / "micro-deepseek-v3-bf16.gguf"
    got = catalog_json("-m", model, "--devices", "h100", "--catalog", "vllm-2026-02",
                       "--dtype", "half", code=0)
    assert [each["operation"] for each in got["operations"]] == ["attention", "weights"]
    assert "selection=dense" in got["operations"][0]["asked"]


def test_a_catalogue_by_path(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({
        "name": "mine", "engine": "E", "as_of": "2026-09", "about": "A test.", "operations": [
            {"operation": "attention", "entries": [{"name": "x", "source": "repo#1", "rules": [
                {"fact": "sequences", "at_most": 2, "because": "two at most"}]}]}]}))
    arguments = ["-m", TINY, "--catalog", file]
    assert catalog_json(*arguments, "-np", "2", code=0)["catalog"]["name"] == "mine"
    got = catalog_json(*arguments, "-np", "3", code=1)
    assert candidates_of(got, "attention") == {"x": ["sequences: at most 2 / 3"]}


@pytest.mark.parametrize("arguments,code,said", [
    (["--catalog", "vllm-2026-03"], "not_found", "did you mean 'vllm-2026-02'"),
    (["--catalog", "list"], "not_found", "names are ik_llama.cpp-2026-08, llama.cpp-2026-08"),
    (["--catalog", "./none.json"], "not_found", "none.json"),
    (["--catalog", "vllm-2026-02", "--dtype", "fp17"], "usage", "did you mean 'fp16'"),
    (["--catalog", "vllm-2026-02", "--kv-cache-dtype", "int4"], "usage", "names are f32, bf16"),
    (["--catalog", "vllm-2026-02", "-np", "0"], "out_of_range", "0 sequences"),
    (["--catalog", "vllm-2026-02", "-tp", "9"], "out_of_range", "cannot be split over 9 ranks"),
    (["--catalog", "vllm-2026-02", "-c", "100"], "usage", "excludes"),
    (["--catalog", "vllm-2026-02", "--kernels", "avx2"], "usage", "excludes"),
])
def test_wrong_questions(arguments, code, said):
    done = topknot("plan", "-m", MICRO, *arguments, "--device", "cuda:0", "--devices",
                   "rtx-pro-6000")
    assert done.returncode == EXIT[code], done.err
    assert said in done.err and done.out == ""
