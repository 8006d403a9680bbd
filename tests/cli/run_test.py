"""`topknot run` with a prompt: text, JSON, streams, attention, memory, and nothing but the GGUF."""
import json
import os
import shutil
import subprocess

import numpy
import pytest

import gguf_files
from program import (EMMA, EXIT, GOLDEN, MICRO, PROGRAM, SANITIZERS, TINY, run_json, succeed,
                     topknot)

SCHEMA = {"text": str, "tokens": list, "prompt_tokens": int, "cached_tokens": int, "stop": str,
          "attention": str, "attention_backend": str, "sparse_queries": int, "queries": int,
          "prompt_tps": float, "generation_tps": float, "seed": int}
MAX_EXTRA_MEMORY = 100_000_000


def test_text_goes_to_standard_output_and_the_rest_to_standard_error():
    done = succeed("run", "-m", TINY, "-p", EMMA, "--temp", "0", "--no-think")
    assert done.out == "Jane Austen wrote Emma.\n"
    for word in ["glm-dsa 'tiny-glm-dsa'", "context 16384", "sparse attention top-256 by cpu_simd",
                 "attention: cpu_simd, sparse top-256", "sparse queries 0 of ", "prompt: 11 tokens",
                 "tokens/s", "(0 cached)", "generated: ", "stop: eos", "seed: "]:
        assert word in done.err, done.err


def test_quiet_leaves_results_and_warnings():
    done = succeed("run", "-m", TINY, "-p", EMMA, "--temp", "0", "--no-think", "-q")
    assert (done.out, done.err) == ("Jane Austen wrote Emma.\n", "")
    done = succeed("run", "-m", TINY, "-p", EMMA, "--temp", "0", "--dense", "-q")
    assert "warning: dense attention" in done.err and len(done.err.splitlines()) == 1


def test_notes_are_for_those_who_ask():
    assert "MTP" not in succeed("run", "-m", TINY, "-p", "Hi", "-n", "1").err
    assert "MTP" in succeed("run", "-m", TINY, "-p", "Hi", "-n", "1", "-v").err


def test_a_default_for_an_absent_key_is_logged_once(tmp_path):
    model = gguf_files.read(TINY)
    model.keys = [key for key in model.keys if not key[0].endswith("indexer.types")]
    path = tmp_path / "model.gguf"
    gguf_files.write(path, model)
    done = succeed("run", "-m", path, "-p", EMMA, "--temp", "0", "--no-think")
    assert done.out == "Jane Austen wrote Emma.\n"
    assert done.err.count("indexer.types is absent") == 1


def test_json_is_one_object_with_every_field():
    got = run_json("-p", EMMA, "--temp", "0", "--no-think")
    assert {name: type(value) for name, value in got.items()} == SCHEMA
    assert got["text"] == "Jane Austen wrote Emma."
    assert (got["stop"], got["attention"], got["sparse_queries"]) == ("eos", "sparse", 0)
    assert (got["prompt_tokens"], got["cached_tokens"]) == (11, 0)
    # The last token of the answer is not run when it is the stop.
    assert got["queries"] == got["prompt_tokens"] + len(got["tokens"])
    assert got["prompt_tps"] > 0 and got["generation_tps"] > 0
    decoded = succeed("tokenize", "-m", TINY, "--decode", ",".join(map(str, got["tokens"])))
    assert decoded.out == got["text"] + "\n"


def test_logprobs():
    got = run_json("-p", EMMA, "--temp", "0", "--no-think", "-n", "3", "--logprobs", "4")
    assert [row["token"] for row in got["logprobs"]] == got["tokens"]
    for row in got["logprobs"]:
        top = row["top"]
        assert len(top) == 4
        assert top[0]["token"] == row["token"] and top[0]["logprob"] == row["logprob"]  # greedy
        assert all(a["logprob"] >= b["logprob"] for a, b in zip(top, top[1:]))
        assert sum(numpy.exp(each["logprob"]) for each in top) <= 1.0001
        assert bytes(row["bytes"]).decode() == row["text"]
    done = succeed("run", "-m", TINY, "-p", EMMA, "--temp", "0", "-n", "2", "--logprobs", "1")
    assert sum("  of  " in line for line in done.err.splitlines()) == 2


@pytest.mark.parametrize("text, same_as", [
    (b"Hi\n", b"Hi"), (b"Hi\r\n", b"Hi"), (b"\xef\xbb\xbfHi\n", b"Hi"), (b"Hi\n\n", b"Hi\n"),
])
def test_a_prompt_file_loses_its_mark_and_one_newline(tmp_path, text, same_as):
    path = tmp_path / "prompt.txt"
    path.write_bytes(text)
    options = ["--raw", "--temp", "0", "-n", "4", "-q"]
    given = run_json(*options, "-p", same_as)
    for got in [run_json(*options, "-f", path), run_json(*options, "-f", "-", stdin=text)]:
        assert (got["prompt_tokens"], got["tokens"]) == (given["prompt_tokens"], given["tokens"])
    kept = run_json(*options, "-p", b"Hi\n")["prompt_tokens"]
    assert kept > run_json(*options, "-p", b"Hi")["prompt_tokens"]


@pytest.mark.parametrize("limit", [["-n=3"], ["--predict", "3"], ["--predict=3"]])
def test_other_spellings_of_the_limit(limit):
    assert len(run_json("-p", EMMA, "--temp", "0", *limit)["tokens"]) == 3


def test_the_device_is_the_cpu():
    assert run_json("-p", "Hi", "-n", "1", "--device", "cpu")["stop"] == "length"


def test_limits_and_stops():
    assert run_json("-p", EMMA, "--temp", "0", "-n", "2")["stop"] == "length"
    assert run_json("-p", EMMA, "--temp", "0", "--max-tokens", "0")["tokens"] == []
    got = run_json("-p", EMMA, "--temp", "0", "--no-think", "--stop", "zebra", "--stop", " wrote")
    assert (got["text"], got["stop"]) == ("Jane Austen", "stop")
    got = run_json("-p", EMMA, "--temp", "0", "--ignore-eos", "-n", "40")
    assert (len(got["tokens"]), got["stop"]) == (40, "length")
    got = run_json("-p", EMMA, "--temp", "0", "--ignore-eos", "-c", "64")
    assert (got["prompt_tokens"] + len(got["tokens"]), got["stop"]) == (65, "context")


def test_a_seed_repeats_an_answer():
    options = ["-p", "Tell me a story.", "-n", "30", "--temp", "1.2"]
    first = run_json(*options)
    again = run_json(*options, "--seed", str(first["seed"]))
    other = run_json(*options, "-s", str(first["seed"] + 1))
    assert again["tokens"] == first["tokens"] and again["seed"] == first["seed"]
    assert other["tokens"] != first["tokens"]
    largest = str(2**64 - 1)
    assert run_json("-p", "Hi", "-n", "1", "--seed", largest)["seed"] == 2**64 - 1
    assert run_json("-p", "Hi", "-n", "1", "--seed", "-1")["seed"] >= 0


def test_spellings_of_other_engines():
    a = run_json("-p", EMMA, "-n", "8", "--temp", "0", "-c", "512", "-t", "1", "-ctk", "f32",
                 "-ub", "3", "-sys", "Be brief.", "--repeat-penalty", "1.1")
    b = run_json("--prompt", EMMA, "--max-tokens", "8", "--temperature", "0", "--max-model-len",
                 "512", "--threads", "1", "--cache-type-k", "f32", "--ubatch-size", "512",
                 "--system-prompt", "Be brief.", "--repetition-penalty", "1.1")
    assert a["tokens"] == b["tokens"]
    assert a["prompt_tokens"] > 11


def test_prompts_from_files_and_pipes(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text(EMMA)
    options = ["--temp", "0", "--no-think"]
    assert run_json("-f", path, *options)["text"] == "Jane Austen wrote Emma."
    assert run_json("-f", "-", *options, stdin=EMMA)["text"] == "Jane Austen wrote Emma."
    assert run_json("-f", "/dev/stdin", *options, stdin=EMMA)["text"] == "Jane Austen wrote Emma."


def golden_prompts():
    prompts = json.loads((GOLDEN / "prompts.json").read_text())
    return [p for p in prompts if p["text"]]


@pytest.mark.parametrize("prompt", golden_prompts(), ids=lambda p: p["name"])
def test_raw_prompts_continue_as_the_reference_does(prompt):
    """Special tokens are parsed, no template is used, and greedy text is the reference's.

    Rows are kept in f32: bf16 rows may turn a choice that the reference makes by 0.014.
    """
    got = run_json("--raw", "-p", prompt["text"], "--temp", "0", "-n", "24", "-ctk", "f32")
    assert got["prompt_tokens"] == prompt["n_tokens"]
    expected = prompt["continuation"].split("<|")[0]
    assert got["text"] and expected.startswith(got["text"])
    assert got["stop"] == "length" or got["text"] == expected


LONG = " ".join(f"The number of house {i} is {i * 7}." for i in range(60))


def test_long_prompts_are_sparse_and_dense_is_shown():
    sparse = run_json("-p", LONG, "--temp", "0", "-n", "4")
    assert sparse["prompt_tokens"] > 300 and sparse["sparse_queries"] > 0
    done = succeed("run", "-m", TINY, "-p", LONG, "--temp", "0", "-n", "4", "--dense", "--json")
    dense = json.loads(done.out)
    assert (dense["attention"], dense["sparse_queries"]) == ("dense", 0)
    assert "warning: dense attention on a model trained for sparse attention" in done.err
    done = succeed("run", "-m", TINY, "-p", LONG, "--temp", "0", "-n", "4", "--json",
                   "--override-kv", "glm-dsa.attention.indexer.top_k=int:0")
    assert json.loads(done.out)["tokens"] == dense["tokens"]
    assert "glm-dsa.attention.indexer.top_k is 0" in done.err


def test_a_forced_backend_is_the_one_that_runs():
    got = run_json("-p", EMMA, "--temp", "0", "-n", "4", "--attention-backend", "cpu_reference")
    assert got["attention_backend"] == "cpu_reference"
    same = run_json("-p", EMMA, "--temp", "0", "-n", "4")
    assert same["attention_backend"] == "cpu_simd" and same["tokens"] == got["tokens"]


def test_another_chat_template(tmp_path):
    path = tmp_path / "plain.jinja"
    path.write_text("[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
                    "{% endfor %}<|assistant|></think>")
    got = run_json("-p", EMMA, "--temp", "0", "--chat-template-file", path)
    assert got["text"] == "Jane Austen wrote Emma."


def test_any_bytes_make_valid_json():
    """A model that writes half characters: random weights, a hot distribution."""
    for seed in range(4):
        got = run_json("--raw", "-p", "é", "-n", "60", "--temp", "50", "--top-k", "0",
                       "--top-p", "1", "--min-p", "0", "--ignore-eos", "--seed", str(seed),
                       "--logprobs", "2")
        assert len(got["tokens"]) == 60
    assert any("\ufffd" in row["text"] for row in got["logprobs"])


@pytest.mark.parametrize("first_holds_tensors", [True, False])
def test_a_split_model_opens_by_any_part_and_by_its_folder(tmp_path, first_holds_tensors):
    parts = gguf_files.split(gguf_files.read(TINY), tmp_path, 3, first_holds_tensors)
    whole = run_json("-p", EMMA, "--temp", "0", "--logprobs", "1")
    for path in [*parts, tmp_path]:
        got = run_json("-p", EMMA, "--temp", "0", "--logprobs", "1", model=path)
        assert got["tokens"] == whole["tokens"]
        assert got["logprobs"] == whole["logprobs"]


def test_nothing_but_the_gguf_is_needed(tmp_path):
    """T-6.5: an empty folder, an empty HOME, no network."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-n", "true"],
                                         capture_output=True).returncode != 0:
        pytest.skip("this machine does not permit `unshare -n`")
    home = tmp_path / "home"
    empty = tmp_path / "empty"
    home.mkdir()
    empty.mkdir()
    done = subprocess.run(
        [unshare, "-n", PROGRAM, "run", "-m", TINY, "-p", EMMA, "--temp", "0", "--no-think"],
        cwd=empty, env={"HOME": str(home)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"Jane Austen wrote Emma.\n"
    assert list(home.iterdir()) == [] and list(empty.iterdir()) == []


@pytest.mark.parametrize("arguments", [
    ["run", "-m", str(TINY), "-p", EMMA, "--temp", "0", "--ignore-eos", "-n", "2000"],
    ["inspect", str(TINY), "--keys", "--tensors"],
    ["backends"],
    ["--help"],
])
def test_a_reader_that_goes_away_ends_the_program_quietly(arguments):
    read, write = os.pipe()
    os.close(read)  # before the program starts: whatever it writes, nobody reads
    process = subprocess.Popen([PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, err = process.communicate(timeout=120)
    assert process.returncode == EXIT["pipe"]
    assert b"error" not in err and b"terminate" not in err


def test_standard_error_may_be_closed():
    done = subprocess.run(f'"{PROGRAM}" run -m "{TINY}" -p "{EMMA}" --temp 0 --no-think 2>&-',
                          shell=True, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, b"Jane Austen wrote Emma.\n")


def test_memory_is_bounded_by_the_file():
    """At most twice the file and 100 MB, with the whole default context reserved."""
    if SANITIZERS:
        pytest.skip(f"memory of a build with {SANITIZERS} is not that of the program")
    process = subprocess.Popen([PROGRAM, "run", "-m", TINY, "-p", LONG, "--temp", "0"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    peak = usage.ru_maxrss * 1024
    assert peak <= 2 * TINY.stat().st_size + MAX_EXTRA_MEMORY, f"{peak} bytes"


def test_a_model_without_a_chat_template(tmp_path):
    model = gguf_files.read(MICRO)
    model.keys = [key for key in model.keys if key[0] != "tokenizer.chat_template"]
    path = tmp_path / "model.gguf"
    gguf_files.write(path, model)
    done = topknot("run", "-m", path, "-p", "Hi")
    assert done.returncode == EXIT["not_found"] and "--raw" in done.err
    assert run_json("--raw", "-p", "Hi", "-n", "2", model=path)["stop"] in ("length", "eos")


def test_a_model_that_is_cut_while_it_runs_is_named(tmp_path):
    model = tmp_path / "cut.gguf"
    shutil.copy(TINY, model)
    process = subprocess.Popen([PROGRAM, "run", "-m", model, "-p", EMMA, "--raw", "-n", "15000",
                                "-c", "16384", "--ignore-eos"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.read(1), "the answer is under way"
    os.truncate(model, 4096)
    _, err = process.communicate(timeout=60)
    assert process.returncode == EXIT["io"], err
    text = err.decode()
    assert "error: a file was lost while it was read" in text
    for word in [f"where: {model}", "why: ", "fix: "]:
        assert word in text
