#!/usr/bin/env python3
"""Installs the build tree, moves what was installed, and builds a stranger's program against it.

usage: install_test.py CMAKE GENERATOR BUILD_DIR CXX sanitizers=LIST
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(*command, **more):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **more)


def expect_files(prefix, relative):
    missing = [path for path in relative if not os.path.exists(os.path.join(prefix, path))]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")


def library_folder(prefix):
    for parent, _, names in os.walk(prefix):
        if "libtopknot.so" in names:
            return parent
    sys.exit("libtopknot.so is not installed")


def check_program(prefix, workdir):
    """The installed program finds its library wherever the folder was moved to."""
    program = os.path.join(prefix, "bin", "topknot")
    if not os.path.exists(program):
        print("the program is not part of this build")
        return
    shown = run(program, "--version", cwd=workdir, env={}, stdout=subprocess.PIPE).stdout
    if not shown.startswith("topknot "):
        sys.exit(f"--version printed {shown!r}")


def check_backend_library(configure, cmake, prefix, folder, here):
    """The example is built with what is installed alone, and answers through the program."""
    build = os.path.join(folder, "backend_library")
    run(*configure, "-S", os.path.join(here, "..", "..", "examples", "backend_library"), "-B",
        build)
    run(cmake, "--build", build)
    program = os.path.join(prefix, "bin", "topknot")
    if not os.path.exists(program):
        return
    model = os.path.join(here, "..", "..", "models", "tiny-glm-dsa.gguf")
    shown = run(program, "run", "-m", model, "--backend-library",
                os.path.join(build, "libscalar_mla.so"), "-p", "Who wrote Emma?", "--temp", "0",
                "--json", stdout=subprocess.PIPE, env={}).stdout
    answer = json.loads(shown)
    if answer["attention_backend"] != "scalar_mla" or "Jane Austen" not in answer["text"]:
        sys.exit(f"the example answered {shown!r}")


def main(cmake, generator, build, compiler, sanitizers):
    if sanitizers != "sanitizers=":
        print("skipped: a consumer of an instrumented library must be instrumented alike")
        return SKIPPED
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix="topknot-install-") as folder:
        first, prefix = os.path.join(folder, "first"), os.path.join(folder, "moved here")
        run(cmake, "--install", build, "--prefix", first)
        shutil.move(first, prefix)
        expect_files(prefix, [
            "include/topknot/backend_abi.h", "include/topknot/engine.h",
            "include/topknot/error.h", "include/topknot/version.h",
            "share/topknot/devices/rtx-pro-6000.json", "share/topknot/catalog/vllm-2026-02.json"])
        consumer = os.path.join(folder, "consumer")
        configure = [cmake, "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}",
                     f"-DCMAKE_CXX_COMPILER={compiler}"]
        run(*configure, "-S", os.path.join(here, "consumer"), "-B", consumer)
        run(cmake, "--build", consumer)
        model = os.path.join(here, "..", "..", "models", "tiny-glm-dsa.gguf")
        shown = run(os.path.join(consumer, "consumer"), model, stdout=subprocess.PIPE).stdout
        print(shown, end="")
        if not shown.endswith(" Jane Austen wrote Emma.\n"):
            sys.exit("the consumer's output is wrong")
        print("library in", os.path.relpath(library_folder(prefix), prefix))
        check_program(prefix, folder)
        check_backend_library(configure, cmake, prefix, folder, here)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
