"""Facts are recalled from thousands of tokens back, through sparse attention."""
import subprocess

import numpy
import pytest

from program import GOLDEN, PROGRAM, TINY, run_json


def decode(ids):
    done = subprocess.run([PROGRAM, "tokenize", "-m", TINY, "--decode",
                           ",".join(map(str, ids))], capture_output=True, check=True)
    return done.stdout[:-1]


@pytest.mark.parametrize("name", ["4096-0", "8192-0"])
def test_recall_through_sparse_attention(name, tmp_path):
    """The model finds a fact thousands of tokens back, through the top 256 keys of each query."""
    recall = numpy.load(GOLDEN / "recall.npz")
    ids = recall[name + "/ids"]
    begin, end = recall[name + "/answers"][0]
    text = decode(ids[:begin])
    while text and text[0] & 0xC0 == 0x80:  # the sequence was cut within a character
        text = text[1:]
    path = tmp_path / "prompt.txt"
    path.write_bytes(text)
    got = run_json("--raw", "-f", path, "--temp", "0", "-n", str(end - begin))
    assert got["text"].encode() == decode(ids[begin:end])
    assert got["attention"] == "sparse"
    assert got["prompt_tokens"] > begin - 64
    # Every query that sees more than 256 keys is sparse, and no other.
    assert got["queries"] == got["prompt_tokens"] + (end - begin) - 1
    assert got["sparse_queries"] == got["queries"] - 256
