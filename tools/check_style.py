#!/usr/bin/env python3
"""The rules of CONTRIBUTING.md that a program can check and clang-format cannot.

usage: check_style.py [ROOT]
Prints one line for each problem, and exits 1 if there is any.
"""
import os
import re
import sys

MAX_COLUMNS = 100
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_README_LINES = 10

SKIPPED_FOLDERS = {".git", ".venv", "build", "__pycache__", "third_party"}
DATA_FOLDERS = ("models", os.path.join("tests", "data"), os.path.join("fuzz", "corpus"))
CPP = (".h", ".cc", ".cu", ".cuh")
HEADERS = (".h", ".cuh")
CODE = CPP + (".py", ".cmake", ".inc", ".def")
TEXT = CODE + (".sh", ".md", ".txt", ".json", ".in", ".yml")
GENERATED_TABLES = (".inc", ".def")  # may be long

SNAKE_CASE = re.compile(r"^[a-z0-9_]+(\.[a-z0-9_]+)*$")
NAME_EXCEPTIONS = re.compile(
    r"^(CMakeLists\.txt|README\.md|Topknot\w+\.cmake|topknotConfig\.cmake\.in)$")
NAMED_FOLDERS = ("src", "include", "examples", "tests", "fuzz", "tools", "scripts", "bench",
                 "cmake")

TODO = re.compile(r"\b(TODO|FIXME|XXX)\b")
TODO_WITH_ISSUE = re.compile(r"\bTODO\(#\d+\)")
# Written so that this file does not match itself.
MACHINE_PATH = re.compile(
    r"(?<![\w.$}{-])/(?:work|root|Users)/|(?<![\w.$}{-])/home/[a-z]|\.\./" "shared")
# A bare or linked host whose first word is what package servers are called.
REGISTRY_HOST = re.compile(
    r"\b(?:deb|archive|security|ports|pypi|files|registry|proxy|mirrors?|packages|index|crates)"
    r"\.[a-z0-9-]+\.(?:org|com|net|io|dev)\b|\bpypi" r"\.org\b")
FUNCTION_SIZE_EXCUSED = re.compile(r"NOLINT(NEXTLINE)?\(readability-function-size\)")


def is_data(relative):
    return any(relative.startswith(folder + os.sep) for folder in DATA_FOLDERS)


def files(root):
    """Relative paths of all text files that people write."""
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
        for name in sorted(names):
            relative = os.path.relpath(os.path.join(parent, name), root)
            is_text = name.endswith(TEXT) or relative == os.path.join(".ci", "run")
            if is_text and not is_data(relative):
                yield relative


def check_lines(relative, lines):
    for number, line in enumerate(lines, 1):
        if relative.endswith(CODE) or relative.endswith("CMakeLists.txt"):
            if len(line) > MAX_COLUMNS:
                yield number, f"{len(line)} columns; at most {MAX_COLUMNS}"
        if "\t" in line and not relative.endswith((".md", ".txt")):
            yield number, "a tab; use spaces (in strings: \\t)"
        if line != line.rstrip() and not relative.endswith(".md"):
            yield number, "blanks at the end of the line"
        if relative.endswith(CODE) and TODO.search(line) and not TODO_WITH_ISSUE.search(line):
            if os.path.basename(relative) != os.path.basename(__file__):
                yield number, "a TODO without its issue; write TODO(#12)"
        if MACHINE_PATH.search(line):
            yield number, "a path of one machine"
        if REGISTRY_HOST.search(line):
            yield number, "the host of a package registry; the user's own configuration names it"


def check_head(relative, lines, root):
    """A header says what it is for; so does a source file without a header."""
    stem, extension = os.path.splitext(relative)
    has_header = any(os.path.exists(os.path.join(root, stem + h)) for h in HEADERS)
    described = has_header or stem.endswith("_test") or os.path.exists(
        os.path.join(root, "include", "topknot", os.path.basename(stem) + ".h"))
    if extension not in HEADERS and described:
        return
    if not lines or not lines[0].startswith(("//", "/*")):
        yield 1, "no comment at the head of the file that says what it is for"


def check_header(lines):
    if not any(line.strip() == "#pragma once" for line in lines):
        yield 1, "no #pragma once"
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*using\s+namespace\b", line):
            yield number, "using namespace in a header reaches every file that includes it"


def blank_out(text):
    """The same text with comments, strings and preprocessor lines blanked, newlines kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
        r"|'(?:\\.|[^'\\\n])'|^[ ]*#(?:\\\n|[^\n])*", re.S | re.M)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def opens_function(head):
    """Whether '{' after `head` (the text since the last ; { or }) begins a function's body."""
    head = head.strip()
    if "(" not in head or re.match(r"(namespace|class|struct|enum|union|extern)\b", head):
        return False
    return not re.search(r"(?<![=!<>])=(?!=)\s*$|\boperator\s*$|\breturn\b|=\s*(\w|:|<|>)*$", head)


def functions(text):
    """(first line, lines) of each function, found by matching braces; good enough for our code."""
    text = blank_out(text)
    head_start, depth, body_depth, first, pending = 0, 0, None, 0, False
    for position, character in enumerate(text):
        if character == "{":
            depth += 1
            head = text[head_start:position]
            if body_depth is None and (opens_function(head) or pending):
                body_depth = depth
                start = head_start + len(head) - len(head.lstrip())
                first = text.count("\n", 0, start) + 1 if not pending else first
        elif character == "}":
            if body_depth == depth:
                # `Foo() : a_{1} {`: the initialiser only looked like the body.
                pending = text[position + 1:].lstrip()[:1] in (",", "{")
                body_depth = None
                if not pending:
                    yield first, text.count("\n", 0, position) + 2 - first
            depth -= 1
        if character in ";{}" and body_depth is None:
            head_start = position + 1


def check_functions(relative, text):
    lines = text.split("\n")
    for first, length in functions(text):
        excused = any(FUNCTION_SIZE_EXCUSED.search(l) for l in lines[max(0, first - 2):first])
        if length > MAX_FUNCTION_LINES and not excused:
            yield first, f"a function of {length} lines; at most {MAX_FUNCTION_LINES}"


def check_name(relative):
    name = os.path.basename(relative)
    if relative.split(os.sep)[0] in NAMED_FOLDERS and not SNAKE_CASE.match(name):
        if not NAME_EXCEPTIONS.match(name):
            yield 1, "a file name that is not snake_case"


def check_file(relative, root):
    with open(os.path.join(root, relative), encoding="utf-8") as file:
        text = file.read()
    lines = text.rstrip("\n").split("\n")
    yield from check_name(relative)
    yield from check_lines(relative, lines)
    in_code = relative.split(os.sep)[0] in NAMED_FOLDERS
    if in_code and not relative.endswith(GENERATED_TABLES) and len(lines) > MAX_FILE_LINES:
        yield 1, f"{len(lines)} lines; at most {MAX_FILE_LINES}"
    if relative.endswith(CPP):
        yield from check_head(relative, lines, root)
    if relative.endswith(HEADERS):
        yield from check_header(lines)
    if relative.endswith((".h", ".cc")):
        yield from check_functions(relative, text)


def check_readmes(root):
    src = os.path.join(root, "src")
    for folder in sorted(os.listdir(src) if os.path.isdir(src) else []):
        path = os.path.join(src, folder, "README.md")
        shown = os.path.relpath(path, root)
        if not os.path.isdir(os.path.join(src, folder)):
            continue
        if not os.path.exists(path):
            yield f"{shown}:1: missing: it says what the folder is for and must not know"
            continue
        with open(path, encoding="utf-8") as file:
            count = len(file.read().rstrip("\n").split("\n"))
        if count > MAX_README_LINES:
            yield f"{shown}:1: {count} lines; at most {MAX_README_LINES}"


def check(root):
    """All problems, as printable lines."""
    problems = list(check_readmes(root))
    for relative in files(root):
        try:
            found = list(check_file(relative, root))
        except UnicodeDecodeError:
            found = [(1, "not UTF-8")]
        problems += [f"{relative}:{line}: {problem}" for line, problem in found]
    return problems


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[0] if arguments else os.path.dirname(here)
    if not os.path.isdir(os.path.join(root, "src")):
        print(f"error: {root} has no src/", file=sys.stderr)
        return 2
    problems = check(root)
    print("\n".join(problems) if problems else "style: no problem")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
