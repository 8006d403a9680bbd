#!/usr/bin/env python3
"""Makes the packages, and checks that the tar.gz needs nothing beside a bare system wherever it is
unpacked, that the device bundle does so too, and what the .deb says of itself.

usage: package_test.py CMAKE GENERATOR BUILD_DIR CXX sanitizers=LIST
The proof on a bare system is scripts/prove_package.sh.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import tree


def one_of(pattern):
    found = glob.glob(pattern)
    if len(found) != 1:
        sys.exit(f"{pattern} matches {found}")
    return found[0]


def needed(binary):
    """Libraries that a binary names, and where the loader finds each."""
    shown = tree.output_of("ldd", binary, env={"PATH": os.environ["PATH"]})
    for line in shown.splitlines():
        match = re.match(r"\s*(\S+)(?: => (.*?))? *(?:\(0x[0-9a-f]+\))?$", line)
        yield os.path.basename(match.group(1)), match.group(2)


def check_self_contained(prefix, binary):
    for name, path in needed(binary):
        if tree.SYSTEM_LIBRARY.match(name):
            continue
        inside = path and os.path.realpath(path).startswith(os.path.realpath(prefix) + os.sep)
        if not inside:
            sys.exit(f"{binary} takes {name} from {path}, not from the package")


def check_answers(program, workdir):
    shown = tree.output_of(program, "--version", cwd=workdir, env={})
    if not shown.startswith("topknot "):
        sys.exit(f"--version printed {shown!r}")
    # A machine is a file of the package; the plan is for another device, so its exit code is not 0
    # where no backend was built for it.
    done = subprocess.run([program, "plan", "-m", tree.TINY_MODEL, "--devices",
                           "cpu-16-core-desktop"], cwd=workdir, env={}, check=True, text=True,
                          stdout=subprocess.PIPE)
    if "complete, fits in memory" not in done.stdout:
        sys.exit(f"the plan is wrong:\n{done.stdout}")
    shown = tree.output_of(program, "run", "-m", tree.TINY_MODEL, "-p", "Who wrote Emma?", "--temp",
                           "0", cwd=workdir, env={})
    if "Jane Austen wrote Emma." not in shown:
        sys.exit(f"the answer is wrong: {shown!r}")


def check_tgz(cpack, build, folder):
    tree.run(cpack, "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "TGZ", "-B", folder)
    with tarfile.open(one_of(os.path.join(folder, "*.tar.gz"))) as archive:
        archive.extractall(folder)
    prefix = os.path.join(folder, "moved here")
    shutil.move(one_of(os.path.join(folder, "topknot-*[!z]")), prefix)
    program = os.path.join(prefix, "bin", "topknot")
    check_self_contained(prefix, program)
    check_self_contained(prefix, tree.library_in(prefix))
    check_answers(program, folder)
    tree.expect_files(prefix, ["include/topknot/gguf.h", "share/topknot/catalog/vllm-2026-02.json",
                               "share/doc/topknot/LICENSE"])
    licenses = os.listdir(os.path.join(prefix, "share/doc/topknot/licenses"))
    if len(licenses) < 5:
        sys.exit(f"licences of libraries are missing: {licenses}")


def check_bundle(cmake, build, folder):
    bundle = os.path.join(folder, "bundle")
    tree.run(cmake, "--install", build, "--prefix", bundle, "--component", "device-bundle")
    program = os.path.join(bundle, "topknot")
    check_self_contained(bundle, program)
    check_answers(program, folder)


def check_deb(cpack, build, folder):
    if not shutil.which("dpkg-shlibdeps"):
        print("no .deb was made: there is no dpkg-shlibdeps (package dpkg-dev)")
        return
    tree.run(cpack, "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "DEB", "-B", folder)
    package = one_of(os.path.join(folder, "*.deb"))
    fields = tree.output_of("dpkg-deb", "-f", package)
    print(fields)
    for pattern in (r"^Package: topknot$", r"^Version: \d+\.\d+\.\d+$", r"^Maintainer: \S",
                    r"^Depends: .*libc6 \(>= .*libfmt\d+.*libpcre2-8-0.*libspdlog",
                    r"^Description: \S.*\n \S"):
        if not re.search(pattern, fields, re.M):
            sys.exit(f"the .deb's fields have no {pattern}")
    names = tree.output_of("dpkg-deb", "-c", package)
    if "./usr/bin/topknot" not in names or "libfmt.so" in names:
        sys.exit(f"the .deb's content is wrong:\n{names}")


def main(cmake, generator, build, compiler, sanitizers):
    del generator, compiler
    tree.skip_if_instrumented(sanitizers)
    cpack = os.path.join(os.path.dirname(cmake), "cpack")
    with tempfile.TemporaryDirectory(prefix="topknot-package-") as folder:
        check_tgz(cpack, build, folder)
        check_bundle(cmake, build, folder)
        check_deb(cpack, build, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
