"""What the tests of installed trees share: commands that must succeed, trees, consumers' builds."""
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TINY_MODEL = os.path.join(SOURCE, "models", "tiny-glm-dsa.gguf")

# Of every Debian 12 or newer, or that system's own; the list of cmake/TopknotPackage.cmake.
SYSTEM_LIBRARY = re.compile(
    r"^(ld-linux.*|linux-vdso.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so.*)$")


def run(*command, **more):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **more)


def output_of(*command, **more):
    return run(*command, stdout=subprocess.PIPE, **more).stdout


def skip_if_instrumented(sanitizers):
    if sanitizers == "sanitizers=":
        return
    print("skipped: a consumer of an instrumented library must be instrumented alike")
    sys.exit(SKIPPED)


def install_and_move(cmake, build, folder):
    """The prefix of a tree that does not stand where it was installed to."""
    first, prefix = os.path.join(folder, "first"), os.path.join(folder, "moved here")
    run(cmake, "--install", build, "--prefix", first)
    shutil.move(first, prefix)
    return prefix


def build_consumer(cmake, generator, compiler, source, build, prefix):
    run(cmake, "-G", generator, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}")
    run(cmake, "--build", build)


def expect_files(prefix, relative):
    missing = [path for path in relative if not os.path.exists(os.path.join(prefix, path))]
    if missing:
        sys.exit(f"not in {prefix}: {', '.join(missing)}")


def library_in(prefix):
    for parent, _, names in os.walk(prefix):
        if "libtopknot.so" in names:
            return os.path.join(parent, "libtopknot.so")
    sys.exit("libtopknot.so is not installed")
