"""T-4.2: the peak of resident memory that a plan predicts is what a run takes, within 3 %."""
import json
import os
import subprocess

import pytest

from program import PROGRAM, SANITIZERS, succeed

TOLERANCE = 0.03
THREADS = 2
UBATCH = 128

# Options of synth; contexts are filled to the last page, so that all of the cache is touched.
SHAPES = [
    ("sparse", ["--like", "bench-1g", "--layers", "12"], 1024),
    ("q8", ["--like", "bench-1g", "--type", "q8_0", "--layers", "6"], 1024),
    ("many-experts", ["--like", "bench-1g", "--experts", "64", "--layers", "6"], 512),
]


def prompt_of(model, tokens):
    """A text of at most `tokens` tokens, within half a page of them."""
    words = "a b c d e f g h ".split()
    text = words[0]
    while True:
        count = json.loads(succeed("tokenize", "-m", model, "-p", text, "--json").out)["count"]
        if count > tokens - 32:
            return text
        more = max((tokens - 16 - count) // 2, 1)
        text += " " + " ".join(words[i % len(words)] for i in range(more))


@pytest.mark.skipif(bool(SANITIZERS), reason="sanitizers keep memory of their own")
@pytest.mark.parametrize("name,shape,context", SHAPES, ids=[s[0] for s in SHAPES])
def test_predicted_memory_is_the_measured_peak(tmp_path, name, shape, context):
    succeed("synth", *shape, "-o", tmp_path / "model", "-t", str(THREADS))
    model = tmp_path / "model.gguf"
    assert model.stat().st_size >= 1_000_000_000
    options = ["-m", model, "-c", str(context), "-t", str(THREADS), "--ubatch-size", str(UBATCH)]
    plan = json.loads(succeed("plan", *options, "--json").out)
    (host,) = plan["memory"]["devices"]
    text = prompt_of(model, context)
    command = [PROGRAM, "run", *map(str, options), "-p", text, "--raw", "-n", "1", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    assert json.loads(out)["prompt_tokens"] > context - 64, "the last page is touched"
    peak = usage.ru_maxrss * 1024
    print(f"{name}: predicted {host['total_bytes']}, measured {peak}")
    assert abs(host["total_bytes"] - peak) <= TOLERANCE * peak
