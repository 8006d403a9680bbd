"""Every refusal says what, where, why and what to do, with an exit code that is not 0.

T-6: nothing that a user or a file does may end in a crash.
"""
import os
import shutil
import subprocess

import pytest

import gguf_files
from program import EXIT, MICRO, PROGRAM, TINY, topknot


def refused(done, code, *words):
    """`words` stand in the message; the exit code is that of `code`; nothing is a result."""
    assert done.returncode == EXIT[code], f"exit code {done.returncode}\n{done.err}"
    assert done.out == ""
    message = done.err[done.err.index("error: "):]
    for part in ["where: ", "why:   ", "fix:   "]:
        assert "\n  " + part in message, message
    for word in words:
        assert word in message, message


def run(model, *arguments, prompt=("-p", "Hi"), **options):
    return topknot("run", "-m", model, *prompt, *arguments, **options)


@pytest.fixture
def micro():
    return gguf_files.read(MICRO)


@pytest.fixture
def parts(tmp_path, micro):
    return gguf_files.split(micro, tmp_path, 3)


@pytest.mark.parametrize("command", [("run", "-p", "Hi"), ("inspect",), ("tokenize", "-p", "Hi"),
                                     ("perplexity", "-f", str(TINY.parent / "README.md"))])
def test_missing_file(tmp_path, command):
    path = tmp_path / "absent.gguf"
    refused(topknot(*command, "-m", path), "not_found", str(path), "No such file")


def test_not_a_gguf(tmp_path):
    path = tmp_path / "text.gguf"
    path.write_text("This is a text and no model, whatever its name says.\n" * 10)
    refused(run(path), "corrupt", str(path), "GGUF")


def test_empty_file(tmp_path):
    path = tmp_path / "empty.gguf"
    path.touch()
    refused(run(path), "corrupt", str(path))


def test_directory_without_a_model(tmp_path):
    refused(run(tmp_path), "not_found", "no model in the directory")


@pytest.mark.parametrize("kept", [3, 23, 24, 1000, 100_000, -1, -100_000])
def test_truncated_file(tmp_path, kept):
    path = tmp_path / "cut.gguf"
    path.write_bytes(MICRO.read_bytes()[:kept])
    refused(run(path), "corrupt", str(path))


def test_missing_part(parts):
    parts[1].unlink()
    refused(run(parts[0]), "not_found", parts[1].name)


def test_repeated_part(parts):
    shutil.copy(parts[2], parts[1])
    refused(run(parts[0]), "corrupt", parts[1].name, "split.no")


def test_wrong_part_count(tmp_path, parts):
    moved = [p.rename(gguf_files.part_path(tmp_path, i + 1, 4)) for i, p in enumerate(parts)]
    shutil.copy(moved[2], gguf_files.part_path(tmp_path, 4, 4))
    refused(run(moved[0]), "corrupt", "its name says 4 parts, split.count says 3")


def test_unknown_architecture(tmp_path, micro):
    path = tmp_path / "other.gguf"
    micro.set_string("general.architecture", "platypus")
    gguf_files.write(path, micro)
    refused(run(path), "unsupported", str(path), "'platypus'", "glm-dsa")


@pytest.mark.parametrize("name", ["glm4moe", "deepseek4", "mistral4"])
def test_architecture_that_is_known_and_not_offered(tmp_path, micro, name):
    path = tmp_path / "other.gguf"
    micro.set_string("general.architecture", name)
    gguf_files.write(path, micro)
    refused(run(path), "unsupported", f"architecture '{name}' cannot be run", "glm-dsa")


def test_missing_tensor(tmp_path, micro):
    path = tmp_path / "less.gguf"
    gone = ["blk.0.attn_q_a.weight", "blk.1.attn_kv_a_norm.weight"]
    micro.tensors = [t for t in micro.tensors if t.name not in gone]
    gguf_files.write(path, micro)
    refused(run(path), "corrupt", str(path), *gone)  # all at once


def test_wrong_shape(tmp_path, micro):
    path = tmp_path / "shape.gguf"
    tensor = micro.tensor("blk.0.attn_q_a.weight")
    tensor.shape = tensor.shape[::-1]
    gguf_files.write(path, micro)
    shown = "{" + ", ".join(str(n) for n in tensor.shape) + "}"
    refused(run(path), "corrupt", tensor.name, shown)


def test_type_that_is_not_decoded(tmp_path, micro):
    path = tmp_path / "type.gguf"
    tensor = micro.tensor("output.weight")
    elements = tensor.shape[0] * tensor.shape[1]
    tensor.type_id, tensor.data = 9, bytes(elements // 32 * 36)  # Q8_1, for activations
    gguf_files.write(path, micro)
    done = run(path)
    refused(done, "unsupported", "output.weight", "Q8_1")
    shown = topknot("inspect", path)
    assert shown.returncode == 0
    assert "not decoded by this build" in shown.out and "would be refused" in shown.out


def test_context_over_the_limit():
    refused(run(TINY, "-c", "16385"), "out_of_range", "16385", "16384")


def test_prompt_longer_than_the_context():
    done = run(TINY, "-c", "64", prompt=("-p", "word " * 100))
    refused(done, "out_of_range", "context holds 64")


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_empty_prompt(tmp_path, raw):
    empty = tmp_path / "empty.txt"
    empty.touch()
    refused(run(TINY, *raw, prompt=("-p", "")), "usage", "the prompt is empty")
    refused(run(TINY, *raw, prompt=("-f", empty)), "usage", "the prompt is empty", str(empty))
    refused(run(TINY, *raw, prompt=("-f", "-")), "usage", "the prompt is empty")


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_invalid_utf8_names_the_byte(tmp_path, raw):
    bad = tmp_path / "latin1.txt"
    bad.write_bytes("Grüße".encode("latin-1"))
    refused(run(TINY, *raw, prompt=("-p", b"Gr\xfc\xdfe")), "usage", "not valid UTF-8", "byte 2")
    refused(run(TINY, *raw, prompt=("-f", bad)), "usage", str(bad), "byte 2")
    refused(run(TINY, *raw, prompt=("-f", "-"), stdin=b"ab\xff"), "usage", "byte 2")


def test_invalid_utf8_in_the_system_message():
    refused(run(TINY, "-sys", b"\xc3("), "usage", "the system message", "byte 0")


def test_prompt_file_that_is_absent_or_a_directory(tmp_path):
    refused(run(TINY, prompt=("-f", tmp_path / "absent")), "not_found", "absent")
    refused(run(TINY, prompt=("-f", tmp_path)), "io", "directory")


def test_chat_template_that_jinja_refuses(tmp_path):
    template = tmp_path / "broken.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}")
    done = run(TINY, "--chat-template-file", template)
    refused(done, "corrupt", "--raw")
    template.write_text("")
    refused(run(TINY, "--chat-template-file", template), "corrupt", "the chat template is empty")


@pytest.mark.parametrize("arguments, code, word", [
    (["--attention-backend", "cpu_smid"], "not_found", "did you mean 'cpu_simd'"),
    (["--kv-cache-dtype", "q8_0"], "unsupported", "try --kv-cache-dtype bf16"),
    (["-ctk", "purple"], "usage", "purple"),
    (["--dtype", "fp16"], "unsupported", "--dtype bf16"),
    (["--kernels", "mmx"], "usage", "portable"),
    (["-t", "-3"], "out_of_range", "-3 threads"),
    (["-ub", "0"], "out_of_range", "--ubatch-size"),
    (["--temp", "-1"], "usage", "--temp -1"),
    (["--override-kv", "nonsense"], "usage", "KEY=TYPE:VALUE"),
    (["--raw", "-sys", "x"], "usage", "-sys"),
    (["-n", "-5"], "usage", "-n -5"),
    (["--device", "cuda:0"], "unsupported", "GPU kernels do not exist"),
    (["--device", "gpu"], "usage", "--device cpu"),
])
def test_options_that_cannot_work(arguments, code, word):
    done = run(TINY, *arguments)
    assert done.returncode == EXIT[code], done.err
    assert done.out == ""
    assert "error: " in done.err and word in done.err and "\n  fix:   " in done.err


@pytest.mark.parametrize("arguments, words", [
    (["rnu"], ["unknown command 'rnu'", "did you mean run"]),
    (["run", "-m", "x", "--max-token", "3"], ["unknown option '--max-token'", "--max-tokens"]),
    (["run", "-m", "x", "--tmep=3"], ["unknown option '--tmep'", "--temp"]),
    (["run", "-p", "x"], ["--model is required"]),
    (["run", "-m", "x", "-n", "many"], ["-n", "many"]),
    (["run", "-m", "x", "-p", "a", "-f", "b"], ["--prompt", "--file"]),
    (["run", "-m", "x", "-p", "a", "--seed", "abc"], ["--seed", "'abc'"]),
    (["run", "-m", "x", "-p", "a", "b"], ["unexpected argument 'b'"]),
    (["run", "-m", "x", "-ngl", "99"], ["-ngl is no option", "GPU kernels do not exist"]),
    (["run", "-m", "x", "--n-gpu-layers=99"], ["--n-gpu-layers is no", "leave it out"]),
    (["plan", "-m", "x", "-fa"], ["-fa", "flash attention", "--attention-backend"]),
    (["run", "-m", "x", "-b", "64"], ["-b is no option", "use -ub"]),
    (["run", "-m", "x", "-ctv", "f16"], ["use -ctk"]),
    (["run", "-m", "x", "-no-cnv"], ["--raw uses no chat template"]),
    (["run", "-m", "x", "--color", "on"], ["--color is no option", "leave it out"]),
    (["run", "model.gguf"], ["'model.gguf'", "give the model with -m"]),
    (["plan", "model.gguf"], ["'model.gguf'", "give the model with -m"]),
    (["run", "-m", "x", "--raw"], ["--raw"]),
    (["run", "-m", "x", "-p", "a", "--logprobs", "-1"], ["--logprobs"]),
    (["tokenize", "-m", TINY], ["there is no text"]),
    (["tokenize", "-m", TINY, "--decode", "1,x"], ["'x' is not a token id"]),
    (["tokenize", "-m", TINY, "--decode", "3072"], ["'3072' is not a token id"]),
    (["perplexity", "-m", TINY], ["--file is required"]),
    (["perplexity", "-m", TINY, "-f", "x", "-c", "1"], ["--ctx-size"]),
    (["inspect"], ["--model is required"]),
])
def test_command_lines_that_cannot_be_understood(arguments, words):
    done = topknot(*arguments)
    assert done.returncode == EXIT["usage"]
    assert done.out == ""
    assert done.err.startswith("error: ")
    for word in words:
        assert word in done.err


def test_short_texts_have_no_perplexity(tmp_path):
    text = tmp_path / "text.txt"
    text.touch()
    refused(topknot("perplexity", "-m", TINY, "-f", text), "usage", "the text is empty")
    text.write_text("a")
    done = topknot("perplexity", "-m", TINY, "-f", text)
    refused(done, "usage", "too short", "2 tokens; found: 1")


def test_output_that_cannot_be_written():
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "backends"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == EXIT["io"]
    assert b"standard output cannot be written" in done.stderr
