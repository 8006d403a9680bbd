#!/usr/bin/env python3
"""Installs the build tree, moves what was installed, and builds a stranger's program against it.

usage: install_test.py CMAKE GENERATOR BUILD_DIR CXX sanitizers=LIST
"""
import glob
import os
import re
import sys
import tempfile

import tree

HEADERS = [f"include/topknot/{name}.h" for name in (
    "attention", "backend_abi", "engine", "error", "export", "gguf", "kernels", "plan", "version")]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def check_program(prefix, workdir):
    """The installed program finds its library wherever the folder was moved to."""
    program = os.path.join(prefix, "bin", "topknot")
    shown = tree.output_of(program, "--version", cwd=workdir, env={})
    if not shown.startswith("topknot "):
        sys.exit(f"--version printed {shown!r}")


def check_headers_stand_alone(prefix, compiler):
    """Each header compiles by itself, without a warning, with nothing else on the path."""
    for header in HEADERS:
        tree.run(compiler, "-std=c++20", *STRICT, "-fsyntax-only", "-I",
                 os.path.join(prefix, "include"), "-x", "c++", "-",
                 input=f"#include <{header.removeprefix('include/')}>\n")


def public_names(prefix):
    """Classes and functions that the installed headers mark with TOPKNOT_API."""
    names = set()
    for path in glob.glob(os.path.join(prefix, "include", "topknot", "*.h")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        names.update(re.findall(r"class TOPKNOT_API (\w+)", text))
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        names.update(re.findall(r"TOPKNOT_API [^;()]*?(\w+)\(", text))
    return names


def check_exports(prefix):
    """libtopknot.so shows the interface of its headers, and nothing of the layers behind it."""
    library = tree.library_in(prefix)
    names = public_names(prefix)
    if "Engine" not in names or "plan_model" not in names:
        sys.exit(f"the headers were misread: {sorted(names)}")
    lines = tree.output_of("nm", "-DC", "--defined-only", library).splitlines()
    shown = [line.split(" ", 2)[2] for line in lines]
    member, abi = r"(?:::[~\w=]+)?", r"(?:\[abi:cxx11\])?"
    own = re.compile(rf"^topknot::(?:Error::)?(?:{'|'.join(sorted(names))}){member}{abi}\(")
    leaked = [name for name in shown if not own.match(name)]
    if leaked:
        sys.exit("libtopknot.so shows what is not its interface:\n" + "\n".join(leaked[:20]))
    hidden = [name for name in names if not any(re.search(rf"\b{name}\b", each) for each in shown)]
    if hidden:
        sys.exit(f"libtopknot.so does not show {', '.join(sorted(hidden))}")
    print(len(shown), "symbols shown")


def main(cmake, generator, build, compiler, sanitizers):
    tree.skip_if_instrumented(sanitizers)
    with tempfile.TemporaryDirectory(prefix="topknot-install-") as folder:
        prefix = tree.install_and_move(cmake, build, folder)
        tree.expect_files(prefix, HEADERS + [
            "share/topknot/devices/rtx-pro-6000.json", "share/topknot/catalog/vllm-2026-02.json",
            "share/doc/topknot/LICENSE"])
        consumer = os.path.join(folder, "consumer")
        tree.build_consumer(cmake, generator, compiler, os.path.join(tree.HERE, "consumer"),
                            consumer, prefix)
        shown = tree.output_of(os.path.join(consumer, "consumer"), tree.TINY_MODEL)
        print(shown, end="")
        if not shown.endswith(" Jane Austen wrote Emma.\n"):
            sys.exit("the consumer's output is wrong")
        check_headers_stand_alone(prefix, compiler)
        check_exports(prefix)
        check_program(prefix, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
