"""topknot plan: recorded answers, the schema of the JSON, --explain, exit codes.

TOPKNOT_UPDATE=1 writes the expected outputs anew; read the difference before committing it.
"""
import json
import os
import pathlib

import pytest

import gguf_files
from program import EXIT, MICRO, ROOT, TINY, succeed, topknot

EXPECTED = ROOT / "tests" / "data" / "plan"
COLUMNS = 100
REFUSAL_KEYS = {"what", "needed", "found", "because", "remedy"}


# File of the expected output, model (a path, or a preset), options, exit code.
CASES = [
    ("tiny-cpu", TINY, ["--devices", "cpu-16-core-desktop"], 0),
    ("tiny-dense", TINY, ["--devices", "cpu-16-core-desktop", "--dense"], 0),
    ("tiny-cuda", TINY, ["--devices", "rtx-3090"], 1),
    ("glm-5-8x-rtx-pro-6000", "glm-5-ud-q4_k_xl", ["--devices", "rtx-pro-6000", "-tp", "8"], 1),
    ("glm-5-3x-rtx-pro-6000", "glm-5-ud-q4_k_xl", ["--devices", "rtx-pro-6000", "-tp", "3"], 1),
    ("glm-5-6x-h200", "glm-5-ud-q4_k_xl", ["--devices", "h200", "-tp", "6", "-np", "4"], 1),
    ("glm-5-12-channels", "glm-5-ud-q4_k_xl", ["--devices", "cpu-12-channel-server"], 0),
    ("glm-5-desktop", "glm-5-ud-q4_k_xl", ["--devices", "cpu-16-core-desktop"], 1),
    ("glm-5.2-2-sockets", "glm-5.2-ud-q4_k_xl",
     ["--devices", "cpu-2-socket-server", "--disk-rate", "6.5"], 0),
    ("glm-5-q2-2-sockets", "glm-5-ud-q2_k_xl", ["--devices", "cpu-2-socket-server"], 0),
    ("deepseek-v2-lite-desktop", "deepseek-v2-lite-q4_k_m",
     ["--devices", "cpu-16-core-desktop", "-c", "32768"], 0),
]


def has_gpu_code():
    backends = json.loads(succeed("backends", "--json").out)["attention"]
    return any(each["name"] == "portable" and each["built"] for each in backends)


@pytest.mark.parametrize("name,model,options,code", CASES, ids=[case[0] for case in CASES])
def test_recorded_answers(published, name, model, options, code):
    on_gpu = not any("cpu" in option for option in options)
    path = model if isinstance(model, pathlib.Path) else published(model)
    done = topknot("plan", "-m", path, *options)
    assert done.returncode == code, done.err
    assert max(len(line) for line in done.out.splitlines()) <= COLUMNS
    # A program without GPU code refuses what runs on a GPU for that reason.
    file = EXPECTED / (name + ("-gpu-code" if on_gpu and has_gpu_code() else "") + ".txt")
    if os.environ.get("TOPKNOT_UPDATE"):
        file.write_text(done.out)
    assert done.out == file.read_text()


def plan_json(*arguments, code=0):
    done = topknot("plan", *arguments, "--json")
    assert done.returncode == code, done.err
    return json.loads(done.out)


def test_the_schema():
    got = plan_json("-m", TINY, "--devices", "rtx-4090", code=1)
    assert list(got) == ["complete", "fits", "model", "machine", "operations", "attention",
                         "memory", "price", "notes", "warnings"]
    assert got["complete"] is False and got["fits"] is True
    for operation in got["operations"]:
        assert set(operation) == {"operation", "chosen", "asked", "candidates"}
        names = [each["name"] for each in operation["candidates"]]
        assert operation["chosen"] is None or operation["chosen"] in names
        for candidate in operation["candidates"]:
            assert set(candidate) == {"name", "refusals"}
            assert candidate["refusals"] or operation["chosen"]
            for refusal in candidate["refusals"]:
                assert set(refusal) == REFUSAL_KEYS
                assert all(refusal[key] for key in REFUSAL_KEYS - {"remedy"})
    names = [each["operation"] for each in got["operations"]]
    for name in ["attention prefill", "attention decode", "indexer scores", "top-k",
                 "position-to-slot map", "cache writer", "linear Q8_0", "experts Q8_0",
                 "embedding Q8_0", "norms and activations", "rope", "router", "sampling"]:
        assert name in names
    assert "collectives" not in names, "one rank needs none"
    for device in got["memory"]["devices"]:
        parts = ["weights", "cache", "workspace", "staging", "reserve"]
        assert device["total_bytes"] == sum(device[f"{part}_bytes"] for part in parts)
    for token in got["price"]["decode"] + got["price"]["prefill"]:
        assert {part["operation"] for part in token["parts"]} <= set(names)


def test_the_price_is_the_roofline_of_the_machine(published):
    got = plan_json("-m", published("glm-5-ud-q4_k_xl"), "--devices", "cpu-12-channel-server",
                    "--disk-rate", "5")
    machine = json.loads((ROOT / "docs/devices/cpu-12-channel-server.json").read_text())["host"]
    decode = {each["depth"]: each for each in got["price"]["decode"]}
    assert sorted(decode) == [0, 32768, 131072]
    for token in decode.values():
        for part in token["parts"]:
            least = max(part["bytes"] / machine["memory_bytes_per_second"],
                        part["operations"] / machine["operations_per_second"]["fp32"])
            assert part["seconds"] == pytest.approx(least)
        assert token["seconds"] == pytest.approx(sum(p["seconds"] for p in token["parts"]))
    # field-notes: 22.6 G parameters of experts a token; models.md: 8192 * context a scored layer.
    part = {each["operation"]: each for each in decode[131072]["parts"]}
    experts = sum(p["operations"] for name, p in part.items() if name.startswith("experts"))
    assert experts == pytest.approx(2 * 75 * 8 * 3 * 6144 * 2048)
    assert part["indexer scores"]["bytes"] == 78 * 131073 * 256
    assert part["attention decode"]["bytes"] == 78 * 2048 * 1152
    assert "indexer scores" not in [p["operation"] for p in decode[0]["parts"] if p["bytes"]]
    load = got["price"]["load"]
    assert load["seconds"] == pytest.approx(load["bytes"] / 5e9)


def test_a_larger_context_that_does_not_fit_names_one_that_does(published):
    arguments = ["-m", published("glm-5-ud-q4_k_xl"), "--devices", "rtx-pro-6000", "-tp", "8"]
    got = plan_json(*arguments, "-np", "4", code=1)
    assert got["fits"] is True, "a context of our choice fits"
    largest = got["memory"]["largest_context"]
    assert plan_json(*arguments, "-np", "4", "-c", str(largest), code=1)["fits"] is True
    more = plan_json(*arguments, "-np", "4", "-c", str(largest + 64), code=1)
    assert more["fits"] is False
    changes = [each["change"] for each in more["memory"]["remedies"]]
    assert changes[0] == "a smaller context"
    # Rows of fewer bytes are offered where attention takes them: by a program with GPU code.
    order = ["a smaller context", "fewer sequences", "fp8_ds cache rows", "q8_0 cache rows",
             "fewer bits", "more devices", "experts in host memory"]
    assert changes == [each for each in order if each in changes]
    assert more["memory"]["remedies"][0]["option"] == f"-c {largest}"


def test_explain():
    done = succeed("plan", "-m", TINY, "--explain", "attention decode")
    assert done.out.startswith("attention decode: cpu_simd\n")
    # A program without GPU code says that; one with it, that this device is no GPU.
    assert "chosen" in done.out
    assert "needs TOPKNOT_CUDA=ON" in done.out or "needs exactly cuda, found cpu" in done.out
    done = topknot("plan", "-m", TINY, "--devices", "rtx-5090", "--explain", "linear")
    assert done.returncode == 1
    assert "linear Q8_0: nothing can run it" in done.out and "linear F32" in done.out
    assert "kernel: needs one, found none in this version" in done.out
    assert "try --device cpu" in done.out
    assert max(len(line) for line in done.out.splitlines()) <= COLUMNS
    got = plan_json("-m", TINY, "--explain", "top-k")
    assert [each["operation"] for each in got["operations"]] == ["top-k"]
    done = topknot("plan", "-m", TINY, "--explain", "atention decode")
    assert done.returncode == EXIT["not_found"] and "'attention decode'" in done.err


def test_a_type_that_nothing_computes_with_is_refused_by_name(tmp_path):
    path = tmp_path / "type.gguf"
    micro = gguf_files.read(MICRO)
    tensor = micro.tensor("output.weight")
    elements = tensor.shape[0] * tensor.shape[1]
    tensor.type_id, tensor.data = 9, bytes(elements // 32 * 36)  # Q8_1, for activations
    gguf_files.write(path, micro)
    done = topknot("plan", "-m", path, "--devices", "cpu-2-socket-server", "--json")
    got = json.loads(done.out)
    assert done.returncode != 0 and not got["complete"]
    refused = [o for o in got["operations"] if o["chosen"] is None]
    assert [o["operation"] for o in refused] == ["linear Q8_1"]
    found = [r["found"] for c in refused[0]["candidates"] for r in c["refusals"]
             if r["what"] == "weight_type"]
    assert found and set(found) == {"Q8_1"}


@pytest.mark.parametrize("arguments,code,word", [
    (["--device", "tpu"], "usage", "cuda:0"),
    (["--device", "cuda:0", "--devices", "cpu-16-core-desktop"], "not_found", "--device cpu"),
    (["--devices", "rtx-6000-pro"], "not_found", "rtx-pro-6000"),
    (["-tp", "0"], "out_of_range", "--tensor-parallel-size"),
    (["-tp", "9", "--devices", "h100"], "out_of_range", "--tensor-parallel-size 1 to 4"),
    (["-np", "0"], "out_of_range", "--parallel"),
    (["-c", "16385"], "out_of_range", "-c 1 to 16384"),
    (["-ctk", "q3"], "usage", "bf16"),
    (["--dtype", "f16"], "unsupported", "--dtype bf16"),
    (["--attention-backend", "cpu_simt"], "not_found", "cpu_simd"),
    (["--disk-rate", "-1"], "out_of_range", "--disk-rate"),
])
def test_what_cannot_be_asked(arguments, code, word):
    done = topknot("plan", "-m", TINY, *arguments)
    assert done.returncode == EXIT[code], done.err
    assert word in done.err and done.out == ""


def test_it_says_what_run_does():
    """The engine executes the same plan."""
    got = plan_json("-m", MICRO, "-c", "512")
    assert got["complete"] and got["fits"]
    err = succeed("run", "-m", MICRO, "-c", "512", "-p", "Hi", "-n", "1").err
    assert f"by {got['attention']['decode']}" in err and "context 512" in err


# T-4.4
@pytest.mark.parametrize("options", [
    ["-c", str(2 ** 40)], ["-c", str(2 ** 63 - 1)], ["-np", str(2 ** 31)], ["-np", str(2 ** 40)],
    ["--ubatch-size", str(2 ** 31)], ["-c", str(2 ** 31), "-np", str(2 ** 16)],
    ["-c", "4096", "-np", str(2 ** 63 - 1)]], ids=" ".join)
def test_absurd_numbers_are_refused(options):
    done = topknot("plan", "-m", TINY, *options)
    assert done.returncode == EXIT["out_of_range"], done.err
    assert "  why: " in done.err and "  fix: " in done.err and done.out == ""


@pytest.mark.parametrize("options", [
    ["-c", str(2 ** 64)], ["-np", "9" * 30], ["-t", str(2 ** 31)],
    ["--override-kv", f"glm-dsa.context_length=int:{2 ** 40}"]], ids=lambda o: o[0])
def test_numbers_beyond_their_type_are_refused(options):
    done = topknot("plan", "-m", TINY, *options)
    refusals = ("usage", "corrupt", "out_of_range")  # CLI11 takes the largest number in its place
    assert done.returncode in [EXIT[name] for name in refusals], done.err
    assert done.err.startswith("error: ") and done.out == ""
