"""inspect, tokenize, perplexity, backends, and what every command shares."""
import json
import math
import os
import subprocess

import pytest

import gguf_files
from program import (EXIT, GOLDEN, MICRO, MODELS, PROGRAM, ROOT, TEST_MODELS, TINY, inspect_json,
                     succeed, topknot)

COMMANDS = ["run", "inspect", "plan", "perplexity", "tokenize", "backends", "doctor", "synth"]


# What every command shares.

def test_without_a_command_help_is_printed():
    done = succeed()
    assert done.out == succeed("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in done.out
    assert done.err == ""


def test_version():
    lines = succeed("--version").out.splitlines()
    assert lines[0].startswith("topknot ") and len(lines) == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_examples(command):
    text = succeed(command, "--help").out
    assert "--json" in text and "Examples:" in text


def help_examples():
    """One for each example line of each --help."""
    for command in [[], *[[c] for c in COMMANDS]]:
        text = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True,
                              check=True).stdout
        for line in text[text.index("Examples:"):].splitlines()[1:]:
            yield line.strip()


@pytest.mark.parametrize("line", list(dict.fromkeys(help_examples())))
def test_examples_run(line, tmp_path):
    os.symlink(TINY, tmp_path / "model.gguf")
    (tmp_path / "prompt.txt").write_text("What is water?")
    (tmp_path / "text.txt").write_text((MODELS / "README.md").read_text())
    path = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(line, shell=True, cwd=tmp_path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    conversation = line == "topknot run -m model.gguf"  # which has nothing to answer here
    assert conversation or done.stdout
    if "--json" in line:
        json.loads(done.stdout)


# inspect

def test_inspect_shows_the_model():
    out = succeed("inspect", TINY).out
    for words in ["glm-dsa", "14.7 M in 94 tensors", "glm-dsa.attention.indexer.top_k = 256",
                  "top-256, 4 heads of 128", "own in layers 0-2", "kv_lora_rank 512",
                  "3072 tokens, 2784 merges", "3040,3047,3049", "4224 bytes a token", "parses",
                  "Q8_0", "the MTP block (27 tensors behind layer 2) is left out"]:
        assert words in out, out


def test_inspect_json_and_listings():
    plain = inspect_json(TINY)
    assert plain["runnable"] is True and plain["refusals"] == []
    assert "tensors" not in plain and "keys" not in plain
    full = inspect_json(TINY, "--tensors", "--keys")
    model = gguf_files.read(TINY)
    assert [t["name"] for t in full["tensors"]] == [t.name for t in model.tensors]
    assert [t["shape"] for t in full["tensors"]] == [t.shape for t in model.tensors]
    assert [k["key"] for k in full["keys"]] == [name for name, _, _ in model.keys]
    sums = {t["type"]: t["bytes"] for t in full["types"]}
    assert sums["Q8_0"] == sum(t["bytes"] for t in full["tensors"] if t["type"] == "Q8_0")
    out = succeed("inspect", TINY, "--tensors", "--keys").out
    assert "blk.0.attn_kv_a_norm.weight" in out and "tokenizer.ggml.merges" in out


def test_inspect_says_why_a_model_is_dense():
    got = inspect_json(TINY, "--override-kv", "glm-dsa.attention.indexer.top_k=int:0")
    assert got["attention"] == {"sparse": False, "reason": "glm-dsa.attention.indexer.top_k is 0"}
    assert got["plan"]["cache_bytes_per_token"]["bf16"] == 3 * 576 * 2


def test_inspect_shows_the_schedule():
    got = inspect_json(TEST_MODELS / "micro-glm-dsa-shared-bf16.gguf")
    indexer = got["attention"]["indexer"]
    assert indexer["shared_layers"] != []
    assert sorted(indexer["full_layers"] + indexer["shared_layers"]) == list(
        range(got["config"]["layers"]))
    assert "glm-dsa.attention.indexer" in indexer["schedule"]


def test_inspect_names_the_rule_of_files_without_a_schedule(tmp_path):
    model = gguf_files.read(MICRO)
    model.keys = [key for key in model.keys if not key[0].endswith("indexer.types")]
    path = tmp_path / "model.gguf"
    gguf_files.write(path, model)
    got = inspect_json(path)
    assert "is absent" in got["attention"]["indexer"]["schedule"]
    later = inspect_json(path, "--override-kv", "glm-dsa.context_length=int:1048576")
    assert "GLM-5.2" in later["attention"]["indexer"]["schedule"]


@pytest.mark.parametrize("path", sorted(TEST_MODELS.glob("*.gguf")), ids=lambda p: p.stem)
def test_inspect_reads_every_file_also_those_that_cannot_be_run(path):
    got = inspect_json(path, "--tensors", "--keys")
    assert got["bytes"] == path.stat().st_size
    assert len(got["tensors"]) == got["tensor_count"] > 0
    assert got["runnable"] == (got["refusals"] == [])
    out = succeed("inspect", path).out
    assert ("would be refused: " in out) == (not got["runnable"])
    for refusal in got["refusals"]:
        assert refusal["what"] and refusal["why"] and refusal["fix"]


def test_inspect_shows_other_architectures(tmp_path):
    model = gguf_files.read(MICRO)
    model.set_string("general.architecture", "platypus\n\x1b[31m")
    path = tmp_path / "model.gguf"
    gguf_files.write(path, model)
    done = succeed("inspect", path)
    assert "\x1b" not in done.out and r"platypus\x0a\x1b[31m" in done.out
    got = inspect_json(path)
    assert got["architecture"] == "platypus\n\x1b[31m" and not got["runnable"]
    assert "config" not in got and got["tokenizer"]["tokens"] > 0


def test_inspect_lists_parts(tmp_path):
    parts = gguf_files.split(gguf_files.read(MICRO), tmp_path, 3)
    got = inspect_json(tmp_path)
    assert [part["path"] for part in got["parts"]] == [str(p) for p in parts]
    assert sum(part["tensors"] for part in got["parts"]) == got["tensor_count"]


# tokenize

def test_tokenize_gives_the_reference_ids():
    cases = json.loads((GOLDEN / "tokenizer_cases.json").read_text())["cases"]
    for case in cases[1:40]:  # the first is the empty text
        done = succeed("tokenize", "-m", TINY, "-f", "-", "--parse-special", "--json",
                       stdin=case["text"])
        assert json.loads(done.out)["tokens"] == case["ids"], case["text"]


def test_tokenize_prints_pieces_or_ids():
    done = succeed("tokenize", "-m", TINY, "-p", "Hello\nworld")
    rows = [line.split(None, 1) for line in done.out.splitlines()]
    ids = succeed("tokenize", "-m", TINY, "-p", "Hello\nworld", "--ids").out.strip()
    assert ids == ",".join(row[0] for row in rows)
    assert "\\x0a" in done.out and done.err == f"{len(rows)} tokens\n"


def test_control_tokens_are_text_unless_asked():
    plain = succeed("tokenize", "-m", TINY, "-p", "<|user|>", "--ids").out
    assert plain == succeed("tokenize", "-m", TINY, "-p", "<|user|>", "--ids",
                            "--no-parse-special").out
    assert plain.count(",") > 0
    assert succeed("tokenize", "-m", TINY, "-p", "<|user|>", "--ids",
                   "--parse-special").out == "3047\n"


def test_decode_is_the_way_back():
    text = "Ünïcödé, 日本語 and 😀\n\n  spaces"
    ids = succeed("tokenize", "-m", TINY, "-p", text, "--ids").out.strip()
    assert succeed("tokenize", "-m", TINY, "--decode", ids).out == text + "\n"
    assert json.loads(succeed("tokenize", "-m", TINY, "--decode", f"[{ids}]", "--json").out)[
        "text"] == text


def test_tokenize_reads_no_weights(tmp_path):
    """A file whose tensors cannot be computed with still tokenises."""
    model = gguf_files.read(MICRO)
    model.tensors = model.tensors[:1]
    path = tmp_path / "model.gguf"
    gguf_files.write(path, model)
    assert succeed("tokenize", "-m", path, "-p", "Hello", "--ids").out.strip()
    assert topknot("run", "-m", path, "-p", "Hello").returncode != 0


# perplexity

@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text((MODELS / "README.md").read_text())
    return path


def perplexity(*arguments):
    return json.loads(succeed("perplexity", "-m", TINY, "--json", *arguments).out)


def test_perplexity_is_sparse_and_dense_side_by_side(text):
    got = perplexity("-f", text, "-c", "400")
    assert got["windows"] == got["text_tokens"] // 400 >= 2
    assert got["scored_tokens"] == got["windows"] * 399
    sparse, dense = got["sparse"], got["dense"]
    assert sparse["sparse_queries"] == got["windows"] * (400 - 256)
    assert dense["sparse_queries"] == 0
    assert dense["queries"] == sparse["queries"] == got["windows"] * 400
    assert sparse["perplexity"] != dense["perplexity"]
    assert abs(math.log(sparse["perplexity"]) - math.log(dense["perplexity"])) < 0.1
    for side in (sparse, dense):
        assert math.isclose(side["perplexity"], math.exp(side["mean_nll"]))
        assert 0 < side["perplexity_error"] < side["perplexity"]
    assert math.isclose(got["difference"]["mean_nll"], sparse["mean_nll"] - dense["mean_nll"],
                        abs_tol=1e-6)


def test_within_the_top_k_sparse_is_dense(text):
    got = perplexity("-f", text, "-c", "256", "--chunks", "2")
    assert got["windows"] == 2 and got["sparse"]["sparse_queries"] == 0
    assert got["sparse"]["mean_nll"] == got["dense"]["mean_nll"]


def test_perplexity_of_a_dense_model_has_one_side(text):
    got = perplexity("-f", text, "-c", "300", "--chunks", "1", "--override-kv",
                     "glm-dsa.attention.indexer.top_k=int:0")
    assert "sparse" not in got and got["dense"]["queries"] == 300
    both = perplexity("-f", text, "-c", "300", "--chunks", "1")
    assert both["dense"]["mean_nll"] == got["dense"]["mean_nll"]


def test_a_text_shorter_than_a_window_is_one_window(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("In the beginning God created the heaven and the earth.")
    got = perplexity("-f", path)
    assert got["windows"] == 1 and got["scored_tokens"] == got["text_tokens"] - 1


def test_the_table_is_on_standard_output_and_progress_is_not(text):
    done = succeed("perplexity", "-m", TINY, "-f", text, "-c", "400", "--chunks", "2")
    assert "window 2 of 2" in done.err and "window 2" not in done.out
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["sparse", "dense"]


# backends

def lists_of(*options):
    """By operation: each entry's name, standing, and what shadows it or the facts that refuse."""
    got = json.loads(succeed("backends", *options, "--json").out)
    for each in got["lists"]:
        for entry in each["entries"]:
            assert set(entry) == {"name", "description", "standing", "shadowed_by", "refusals",
                                  "open_rules"}
    return {each["operations"]: [
        (e["name"], e["standing"], e["shadowed_by"] or [r["what"] for r in e["refusals"]])
        for e in each["entries"]] for each in got["lists"]}


def test_the_lists_of_a_device_say_what_can_never_win():
    on_cpu = lists_of("--device", "cpu-16-core-desktop")
    assert on_cpu["attention"][-2:] == [("cpu_simd", "can_win", []),
                                        ("cpu_reference", "shadowed", "cpu_simd")]
    assert ("avx2", "shadowed", "avx512") in on_cpu["norms and activations, rope"]
    assert ("reference", "can_win", []) in on_cpu["indexer scores"], "no bound of its workspace"
    on_gpu = lists_of("--device", "rtx-pro-6000")
    assert list(on_gpu) == list(on_cpu) and "top-k" in on_gpu
    assert ("cpu_simd", "refused", ["device"]) in on_gpu["attention"]
    assert ("nccl", "absent", ["kernel"]) in on_gpu["collectives"]
    assert on_gpu["sampling"] == [("host", "can_win", [])], "on every device"


def test_the_device_of_the_lists_is_named_as_for_a_plan(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text((ROOT / "docs/devices/rtx-pro-6000.json").read_text())
    by_file = lists_of("--device", file)
    assert by_file == lists_of("--devices", file) == lists_of("--device", "rtx-pro-6000")
    assert by_file == lists_of("--devices", "rtx-pro-6000", "--device", "cuda:0")
    assert lists_of("--device", "cpu")["attention"] == lists_of("--devices",
                                                                "cpu-16-core-desktop")["attention"]
    text = succeed("backends", "--device", file).out
    assert "sm=120" in text and max(len(line) for line in text.splitlines()) <= 100
    assert "needs exactly cpu, found cuda (it runs on the host)" in text
    assert "never, unless it is named: cpu_simd" in succeed("backends", "--device", "cpu").out
    wrong = topknot("backends", "--device", "rtx-pro-600")
    assert wrong.returncode == EXIT["not_found"] and "'rtx-pro-6000'" in wrong.err
    wrong = topknot("backends", "--device", "cuda:x")
    assert wrong.returncode == EXIT["usage"] and "'cuda:x' is not a device" in wrong.err
    wrong = topknot("backends", "--devices", "rtx-pro-6000", "--device", "cuda:1")
    assert wrong.returncode == EXIT["not_found"] and "no cuda:1" in wrong.err
    assert topknot("backends", "--device", "cpu", "--probe").returncode == EXIT["usage"]


def test_backends_are_listed_with_their_limits():
    got = json.loads(succeed("backends", "--json").out)
    names = [each["name"] for each in got["attention"]]
    assert names[-1] == "cpu_reference" and "cpu_simd" in names
    for each in got["attention"]:
        if each["built"]:
            assert each["description"] and all(
                rule["accepts"] and rule["because"] for rule in each["rules"])
        else:
            assert each["because"] and each["remedy"]
    assert any(kernels["available"] for kernels in got["kernels"])
    assert got["devices"]["cpu"]["cores"] >= 1
    assert got["devices"]["cuda"]["devices"] or got["devices"]["cuda"]["problem"]
    out = succeed("backends").out
    for name in names:
        assert name in out
    assert "kv_format: one of f32, bf16" in out


def test_probe_runs_every_backend_with_every_instruction_set():
    got = json.loads(succeed("backends", "--probe", "--json").out)
    built = {each["name"]: each["rules"] for each in got["attention"] if each["built"]}
    available = [each["name"] for each in got["kernels"] if each["available"]]
    gpus = [f"sm_{each['sm']}" for each in got["devices"]["cuda"]["devices"]]
    for backend, rules in built.items():
        on_host = any(r["fact"] == "device" and r["accepts"] == "exactly cpu" for r in rules)
        for kernels in available if on_host else gpus:
            found = [p for p in got["probe"]
                     if p["backend"] == backend and p["kernels"] == kernels]
            assert {p["selection"] for p in found} == {"sparse", "dense"}
            assert all(p["passed"] and p["largest_difference"] <= p["limit"] for p in found)
    out = succeed("backends", "--probe").out
    assert out.count("passed  largest difference") == len(got["probe"])


# synth

def test_synth_makes_a_model_that_runs(tmp_path):
    made = json.loads(succeed("synth", "--like", "tiny", "--layers", "2", "--type", "exps=q8_0",
                              "-o", str(tmp_path / "made"), "--json").out)
    assert made["architecture"] == "glm-dsa" and made["tensors"] == 2 * 15 + 3 + 8 + 3
    part, = made["parts"]
    assert os.path.getsize(part["path"]) == part["bytes"] == made["bytes"]
    model = inspect_json(part["path"])
    assert model["runnable"] and model["config"]["layers"] == 2
    assert succeed("run", "-m", part["path"], "-p", "the", "-n", "4").out


def test_synth_writes_published_sizes_as_headers(tmp_path):
    made = json.loads(succeed("synth", "--like", "glm-5-ud-q4_k_xl", "--headers-only", "-o",
                              str(tmp_path / "glm-5.gguf"), "--json").out)
    assert made["tensors"] == 1809 and len(made["parts"]) == 10
    assert 395 << 30 < made["bytes"] < 410 << 30
    names = sorted(os.listdir(tmp_path))
    assert names[0] == "glm-5-00001-of-00010.gguf" and len(names) == 10
    assert sum(os.stat(tmp_path / name).st_blocks * 512 for name in names) < 16 << 20


def test_synth_reads_a_shape_and_options_win(tmp_path):
    (tmp_path / "shape.json").write_text('{"architecture": "deepseek2", "layers": 5, "heads": 2}')
    made = json.loads(succeed("synth", "--shape", str(tmp_path / "shape.json"), "--layers", "3",
                              "--tied-output", "--dry-run", "-o", str(tmp_path / "x"),
                              "--json").out)
    assert made["architecture"] == "deepseek2"
    assert made["tensors"] == 3 * 10 + 3 + 2 * 8 + 2
    assert os.listdir(tmp_path) == ["shape.json"]


@pytest.mark.parametrize("options, words", [
    (["--like", "tinny"], "one of: tiny"),
    (["--layers", "four"], "an integer"),
    (["--layers", "0"], "layers is 0"),
    (["--type", "exps=q9"], "iq2_xs"),
    (["--split-max-size", "big"], "no size"),
    (["--gain", "0"], "gain"),
])
def test_synth_says_what_is_wrong(options, words, tmp_path):
    done = topknot("synth", *options, "-o", str(tmp_path / "x"))
    assert done.returncode in (EXIT["usage"], EXIT["not_found"]) and words in done.err
    assert os.listdir(tmp_path) == []


def test_synth_overwrites_only_by_force(tmp_path):
    command = ["synth", "--like", "tiny", "-o", str(tmp_path / "x")]
    succeed(*command)
    done = topknot(*command)
    assert done.returncode == EXIT["usage"] and "--force" in done.err
    succeed(*command, "--force")


# options that name something

@pytest.mark.parametrize("arguments", [
    ["plan", "-m", TINY, "--catalog", ""], ["plan", "-m", TINY, "--devices", ""],
    ["backends", "--device", ""], ["doctor", "--report", ""],
    ["bench", "attention", "--svg", ""]])
def test_an_empty_name_is_not_the_same_as_none(arguments):
    done = topknot(*arguments)
    assert done.returncode == 2 and "is empty" in done.err and "fix:" in done.err


def test_a_benchmark_overwrites_a_picture_only_when_told(tmp_path):
    picture = tmp_path / "a.svg"
    picture.write_text("mine")
    done = topknot("bench", "attention", "--svg", picture)
    assert done.returncode == 2 and "--force" in done.err
    assert picture.read_text() == "mine"
