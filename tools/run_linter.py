#!/usr/bin/env python3
"""Runs a linter that may be missing, over all of the project's files that it knows.

usage: run_linter.py format|shell [ROOT]
Exits 0 if the linter is content, 1 if not, 77 (skipped) if it is not installed.
"""
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
# Other versions lay out some constructs differently; one version decides.
CLANG_FORMAT_MAJOR = 14
CPP = (".h", ".cc", ".cu", ".cuh")


def files_below(root, folders, extensions):
    for folder in folders:
        for parent, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(extensions):
                    yield os.path.join(parent, name)


def find_clang_format():
    for name in (f"clang-format-{CLANG_FORMAT_MAJOR}", "clang-format"):
        if not shutil.which(name):
            continue
        text = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
        version = re.search(r"version (\d+)", text)
        if version and int(version.group(1)) == CLANG_FORMAT_MAJOR:
            return name
    return None


def command_for(linter, root):
    """The command to run, or None and what is missing."""
    if linter == "format":
        program = find_clang_format()
        if not program:
            return None, f"clang-format {CLANG_FORMAT_MAJOR}"
        sources = list(files_below(root, ("src", "include", "tests", "fuzz", "bench"), CPP))
        return [program, "--dry-run", "-Werror", *sources], None
    if not shutil.which("shellcheck"):
        return None, "shellcheck"
    scripts = list(files_below(root, ("scripts",), (".sh",)))
    return ["shellcheck", *scripts, os.path.join(root, ".ci", "run")], None


def main(arguments):
    if not arguments or arguments[0] not in ("format", "shell"):
        print(__doc__, file=sys.stderr)
        return 2
    root = arguments[1] if len(arguments) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..")
    command, missing = command_for(arguments[0], root)
    if missing:
        print(f"skipped: {missing} is not installed (see scripts/packages.txt)")
        return SKIPPED
    return 1 if subprocess.run(command).returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
