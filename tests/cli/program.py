"""The program under test, and the models it is given."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TOPKNOT_PROGRAM", str(ROOT / "build" / "release" / "topknot"))
SANITIZERS = os.environ.get("TOPKNOT_SANITIZE", "")
MODELS = ROOT / "models"
TEST_MODELS = ROOT / "tests" / "data" / "models"
GOLDEN = ROOT / "tests" / "data" / "golden"
TINY = MODELS / "tiny-glm-dsa.gguf"
MICRO = TEST_MODELS / "micro-glm-dsa-bf16.gguf"
EMMA = "Who wrote Emma?"

# Sanitized builds are slower by an order of magnitude.
TIMEOUT_SECONDS = 600 if SANITIZERS else 120

# One table with src/cli/output.cc.
EXIT = {"usage": 2, "not_found": 3, "corrupt": 4, "unsupported": 5, "out_of_range": 6,
        "resource": 7, "io": 8, "pipe": 141}


def topknot(*arguments, stdin=b"", **options):
    """Runs the program; standard output and standard error are text in the result."""
    words = [PROGRAM] + [a if isinstance(a, bytes) else str(a) for a in arguments]
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run(words, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS,
                          **options)
    done.out = done.stdout.decode("utf-8")  # strict: what the program prints is UTF-8
    done.err = done.stderr.decode("utf-8", "replace")
    return done


def succeed(*arguments, **options):
    done = topknot(*arguments, **options)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.err}"
    return done


def run_json(*arguments, model=TINY, **options):
    """The one object that `run --json` prints."""
    done = succeed("run", "-m", model, "--json", *arguments, **options)
    assert done.out.endswith("\n") and done.out.count("\n") == 1
    return json.loads(done.out)


def inspect_json(model, *arguments):
    return json.loads(succeed("inspect", model, "--json", *arguments).out)
