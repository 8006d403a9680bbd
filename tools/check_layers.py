#!/usr/bin/env python3
"""Every file of src/ includes only from a lower layer or its own folder (docs/architecture.md).

usage: check_layers.py [ROOT]
Prints one line for each include that breaks the rule, and exits 1 if there is any.
"""
import os
import re
import sys

LAYERS = {
    "base": 0,
    "tensor": 1,
    "device": 2, "gguf": 2, "tokenizer": 2,
    "capability": 3, "chat": 3,
    "ops": 4, "comm": 4, "kvcache": 4,
    "attention": 5,
    "model": 6, "kernels": 6,
    "plan": 7, "synth": 7,
    "engine": 8, "parts": 8,
    "server": 9, "bench": 9, "doctor": 9,
    "cli": 10,
}
PUBLIC = "topknot"  # include/topknot: plain types that every layer may use
GENERATED = {"topknot_commit.h"}
SOURCES = (".h", ".cc", ".cu", ".cuh", ".inc", ".def")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def advice(found, asking):
    if found == asking:
        return "folders of one layer do not know each other"
    return "pass in what is needed, or move the shared part down"


def problem_of_src(include, folder, is_test, root):
    """Why a file of src/<folder> may not include `include`; None if it may."""
    first, _, rest = include.partition("/")
    if include in GENERATED or first in (PUBLIC, folder):
        return None
    if first in LAYERS and rest:
        found, asking = LAYERS[first], LAYERS[folder]
        if found < asking:
            return None
        return f"includes {include} (layer {found} from layer {asking}): {advice(found, asking)}"
    if os.path.exists(os.path.join(root, "tests", include)):
        return None if is_test else f"includes {include}: only tests may use what is in tests/"
    return f'includes {include}: write the path from src/, as in "base/strings.h"'


def problem_of_public(include):
    """The installed headers must stand alone."""
    if include.startswith(PUBLIC + "/"):
        return None
    return f"includes {include}: include/topknot is installed and needs nothing from src/"


def includes(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1)


def sources(folder):
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(SOURCES):
                yield os.path.join(parent, name)


def check(root):
    """All problems, as printable lines."""
    problems = []
    src = os.path.join(root, "src")
    for path in sources(src):
        shown = os.path.relpath(path, root)
        folder = os.path.relpath(path, src).split(os.sep)[0]
        if folder not in LAYERS:
            problems.append(f"{shown}:1: folder {folder} has no layer: name it in check_layers.py")
            continue
        is_test = os.path.splitext(path)[0].endswith("_test")
        for line, include in includes(path):
            problem = problem_of_src(include, folder, is_test, root)
            if problem:
                problems.append(f"{shown}:{line}: {problem}")
    for path in sources(os.path.join(root, "include")):
        for line, include in includes(path):
            problem = problem_of_public(include)
            if problem:
                problems.append(f"{os.path.relpath(path, root)}:{line}: {problem}")
    return problems


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[0] if arguments else os.path.dirname(here)
    if not os.path.isdir(os.path.join(root, "src")):
        print(f"error: {root} has no src/", file=sys.stderr)
        return 2
    problems = check(root)
    print("\n".join(problems) if problems else "layers: no problem")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
