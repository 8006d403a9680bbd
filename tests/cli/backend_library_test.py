"""--backend-library: a backend from a shared library is planned for, listed, probed and run."""
import json
import os
import pathlib

import pytest

from program import EXIT, MODELS, ROOT, TINY, run_json, succeed, topknot

FOLDER = pathlib.Path(os.environ.get(
    "TOPKNOT_LIBRARIES", ROOT / "build" / "release" / "tests" / "backend_library"))
GOOD = FOLDER / "scalar_mla.so"
QUESTION = ["-p", "Who wrote Emma?", "--temp", "0", "-n", "30"]


def test_run_executes_it_and_answers_the_same():
    own = run_json(*QUESTION)
    got = run_json(*QUESTION, "--backend-library", GOOD)
    assert own["attention_backend"] == "cpu_simd"
    assert got["attention_backend"] == "scalar_mla"
    assert got["text"] == own["text"] and "Jane Austen wrote Emma." in got["text"]
    dense = run_json(*QUESTION, "--backend-library", GOOD, "--dense")
    assert dense["attention_backend"] == "scalar_mla" and dense["text"] == own["text"]
    placed = run_json(*QUESTION, "--backend-library", f"{GOOD},after=cpu_simd")
    assert placed["attention_backend"] == "cpu_simd"
    named = run_json(*QUESTION, "--backend-library", f"{GOOD},name=mine,after=cpu_simd",
                     "--attention-backend", "mine")
    assert named["attention_backend"] == "mine" and named["text"] == own["text"]


def test_sparse_rows_are_read_through_it(tmp_path):
    text = (MODELS / "README.md").read_text()
    assert len(text) > 2000, "more tokens than the model's top-k of 256"
    (tmp_path / "text.txt").write_text(text)
    arguments = ["perplexity", "-m", TINY, "-f", tmp_path / "text.txt", "--window", "400",
                 "--chunks", "1", "--json"]
    own = json.loads(succeed(*arguments).out)
    got = json.loads(succeed(*arguments, "--backend-library", GOOD).out)
    for side in ["sparse", "dense"]:
        assert got[side]["attention_backend"] == "scalar_mla"
        # Sums in double against sums in float over rows of bf16.
        assert got[side]["mean_nll"] == pytest.approx(own[side]["mean_nll"], abs=2e-3)
    assert got["sparse"]["sparse_queries"] == 144


def test_plan_has_it_as_a_candidate():
    arguments = ["plan", "-m", TINY, "--backend-library", GOOD, "--device", "cpu"]
    got = json.loads(succeed(*arguments, "--json").out)
    assert got["attention"]["decode"] == got["attention"]["prefill"] == "scalar_mla"
    text = succeed(*arguments, "--explain", "attention decode").out
    assert "1. scalar_mla: chosen" in text
    refused = topknot("plan", "-m", TINY, "--backend-library", f"{GOOD},before=cpu_simd",
                      "--devices", "rtx-pro-6000", "--explain", "attention decode")
    # A program with GPU code has another backend for that card.
    assert refused.returncode == (0 if "portable: chosen" in refused.out else 1)
    assert "scalar_mla: refused" in refused.out
    assert "device: needs exactly cpu, found cuda" in refused.out
    limits = topknot("plan", "-m", TINY, "--backend-library", GOOD, "--kv-cache-dtype", "fp8_ds",
                     "--explain", "attention decode")
    assert limits.returncode == 1
    assert "kv_format: needs one of f32, bf16, q8_0, found fp8_ds" in limits.out
    assert "because rows of no other format are widened" in limits.out


def test_memory_counts_its_workspace():
    def workspace(*options):
        got = json.loads(succeed("plan", "-m", TINY, "-c", "512", "-t", "2", "--json",
                                 *options).out)
        return got["memory"]["devices"][0]["workspace_bytes"]

    reference = workspace("--attention-backend", "cpu_reference")
    library = workspace("--backend-library", GOOD)
    # cpu_reference: a row of 576 floats and 512 doubles; the library: the same for each thread.
    assert library - reference == 576 * 4 + 512 * 8


def test_backends_lists_probes_and_places_it():
    got = json.loads(succeed("backends", "--backend-library", GOOD, "--probe", "--json").out)
    first = got["attention"][0]
    assert first["name"] == "scalar_mla" and first["built"] and first["library"] == str(GOOD)
    probes = [each for each in got["probe"] if each["backend"] == "scalar_mla"]
    assert [each["selection"] for each in probes] == ["sparse", "dense"]
    assert all(each["passed"] and each["kernels"] == "library" for each in probes)
    text = succeed("backends", "--backend-library", f"{GOOD},after=cpu_reference").out
    assert text.index("cpu_reference") < text.index("scalar_mla")
    assert "states its limits in code" in text
    lists = json.loads(succeed("backends", "--device", "rtx-pro-6000", "--json",
                               "--backend-library", GOOD).out)["lists"]
    entry = lists[0]["entries"][0]
    assert entry["name"] == "scalar_mla" and entry["standing"] == "refused"
    assert entry["refusals"][0]["found"] == "cuda"


# The library, the exit code, what is said.
FAULTS = [
    ("none", "not_found", "No such file"),
    ("no_symbol", "corrupt", "exports no symbol topknot_backend_abi"),
    ("old_version", "unsupported", "another ABI version: needs 1, found 0"),
    ("null_entries", "corrupt", "entries of its table are null: description, run"),
    ("taken_name", "usage", "the name 'cpu_simd' is taken"),
    ("fault_in_run", "unsupported", "its probe crashed with signal 11 (Segmentation fault)"),
    ("abort_in_run", "unsupported", "its probe crashed with signal 6 (Aborted)"),
    ("throw_in_run", "unsupported", "it threw an exception: not today"),
    ("exit_in_run", "unsupported", "its probe ended the program with exit code 0"),
    ("wrong_scale", "unsupported", "computes wrong numbers"),
]


@pytest.mark.parametrize("name,code,said", FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_faulty_one_is_refused_by_every_command(name, code, said, tmp_path):
    (tmp_path / "text.txt").write_text("What is water?")
    library = ["--backend-library", FOLDER / f"{name}.so"]
    for command in [["run", "-m", TINY, "-p", "x", "-n", "1"], ["plan", "-m", TINY], ["backends"],
                    ["perplexity", "-m", TINY, "-f", tmp_path / "text.txt"]]:
        done = topknot(*command, *library)
        assert done.returncode == EXIT[code], (command[0], done.err)
        assert said in done.err and done.out == ""
        assert f"where: {FOLDER / name}.so" in done.err and "fix: " in done.err


@pytest.mark.parametrize("option,code,said", [
    (f"{GOOD},before=cpu_smid", "not_found", "did you mean 'cpu_simd'?"),
    (f"{GOOD},befor=cpu_simd", "usage", "did you mean 'before'?"),
    (f"{GOOD},name=A B", "usage", "a-z 0-9"),
    (str(MODELS / "README.md"), "corrupt", "not a shared library"),
    (str(MODELS), "corrupt", "not a shared library"),
])
def test_wrong_options(option, code, said):
    done = topknot("plan", "-m", TINY, "--backend-library", option)
    assert done.returncode == EXIT[code], done.err
    assert said in done.err


def test_two_of_one_name_are_told_apart():
    done = topknot("backends", "--backend-library", GOOD, "--backend-library", GOOD)
    assert done.returncode == EXIT["usage"] and "'scalar_mla' is taken" in done.err
    succeed("backends", "--backend-library", GOOD, "--backend-library", f"{GOOD},name=other")
    done = topknot("run", "-m", TINY, "-p", "x", "--backend-library", GOOD,
                   "--attention-backend", "scalar_mle")
    assert done.returncode == EXIT["not_found"] and "'scalar_mla'" in done.err
