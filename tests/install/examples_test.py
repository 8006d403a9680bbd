#!/usr/bin/env python3
"""Builds the examples from an installed tree, and nothing else of Topknot, and runs them.

usage: examples_test.py CMAKE GENERATOR BUILD_DIR CXX sanitizers=LIST
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import tree

MAX_LINES = 60
EXAMPLES = os.path.join(tree.SOURCE, "examples")
ALL = ["load_gguf", "select_backend", "sparse_decode"]


def check_length():
    sources = glob.glob(os.path.join(EXAMPLES, "*.cc"))
    if sorted(os.path.basename(path)[:-3] for path in sources) != ALL:
        sys.exit(f"this test knows {ALL}, examples/ has {sources}")
    for path in sources:
        with open(path, encoding="utf-8") as file:
            lines = len(file.readlines())
        if lines > MAX_LINES:
            sys.exit(f"{path}: {lines} lines; at most {MAX_LINES}")


def check_backend_library(prefix, built):
    """The library answers for a model through the program that it was built beside."""
    shown = tree.output_of(os.path.join(prefix, "bin", "topknot"), "run", "-m", tree.TINY_MODEL,
                           "--backend-library", os.path.join(built, "libscalar_mla.so"), "-p",
                           "Who wrote Emma?", "--temp", "0", "--json", env={})
    answer = json.loads(shown)
    if answer["attention_backend"] != "scalar_mla" or "Jane Austen" not in answer["text"]:
        sys.exit(f"backend_library: the model answered {shown!r}")


def main(cmake, generator, build, compiler, sanitizers):
    check_length()
    tree.skip_if_instrumented(sanitizers)
    with tempfile.TemporaryDirectory(prefix="topknot-examples-") as folder:
        prefix = tree.install_and_move(cmake, build, folder)
        built = os.path.join(folder, "built")
        tree.build_consumer(cmake, generator, compiler, EXAMPLES, built, prefix)

        def expect(status, patterns, example, *arguments):
            done = subprocess.run([os.path.join(built, example), *arguments], cwd=folder, env={},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            print(f"$ {example} {' '.join(arguments)}\n{done.stdout}", end="")
            missing = [each for each in patterns if not re.search(each, done.stdout, re.M)]
            if done.returncode != status or missing:
                sys.exit(f"{example}: exit {done.returncode}, expected {status}; no {missing}")

        expect(0, [r"^glm-dsa, 4 layers, \d+ keys, 94 tensors in 1 files$", r"^  Q8_0 +\d+ bytes$",
                   r"^token_embd\.weight Q8_0 \[ 3072 256 \], row 0:( -?[\d.e-]+){4} \.\.\.$"],
               "load_gguf", tree.TINY_MODEL)
        expect(1, [r"^error: the model has no tensor 'blk\.0\.attn_nrom\.weight'$",
                   r"did you mean 'blk\.0\.attn_norm\.weight'"],
               "load_gguf", tree.TINY_MODEL, "blk.0.attn_nrom.weight")
        expect(1, [r"^error: "], "load_gguf", "not-there.gguf")
        expect(2, [r"^usage: "], "load_gguf")
        expect(0, [r"^sparse MLA attention \(device=cpu .*heads=64 kv_lora_rank=512 .*\)$",
                   r"^  cpu_simd +chosen$", r"^  cpu_reference +could run, too$"],
               "select_backend")
        # Machines are data beside the library, found from a program that stands elsewhere. No
        # backend will ever take rows of f16: latent rows leave its range.
        expect(1, [r"device=cuda sm=90", r"^  cpu_simd +refused$",
                   r"^    device is cuda, needed: exactly cpu, because .+; try --device cpu$",
                   r"^    kv_format is f16, needed: .+; try "],
               "select_backend", "h200", "f16")
        expect(2, [r"^error: no machine is named 'h2000'$", r"did you mean 'h200'"],
               "select_backend", "h2000")
        expect(0, [r"^cpu_simd: largest difference from the definition \d\.\de-0[5-9]$"],
               "sparse_decode")
        library = os.path.join(folder, "library")
        tree.build_consumer(cmake, generator, compiler, os.path.join(EXAMPLES, "backend_library"),
                            library, prefix)
        check_backend_library(prefix, library)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
