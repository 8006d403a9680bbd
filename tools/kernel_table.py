#!/usr/bin/env python3
"""Registers, spills and static shared memory of every GPU kernel, as the compiler reports them.

usage: kernel_table.py --check          the table in docs/kernels.md is of these sources, no kernel
                                        spills, and none has a branch for an architecture (needs
                                        no compiler; a test)
       kernel_table.py --write [-j N]   compiles every .cu for each architecture and writes the
                                        table (minutes, needs nvcc)

A kernel that is called generic may spill: it is the fallback for shapes that no tuned kernel takes.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = (80, 89, 90, 120)
TABLE = os.path.join("docs", "kernels.md")
HEAD = """# What the compiler makes of each GPU kernel

Registers of a thread, bytes that it spills, and bytes of static shared memory of a block, for each
architecture, from `ptxas -v` of CUDA {version}. Dynamic shared memory is computed beside each
kernel and tested against the 101,376 bytes of sm_86, sm_89 and sm_120. Written by
`python3 tools/kernel_table.py --write`; a test compares the hash below with the sources.

sources: {digest}

| kernel | {columns} |
| --- | {rules} |
"""
ENTRY = re.compile(r"Compiling entry function '(\S+)' for 'sm_(\d+)")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def gpu_files(root):
    """Every file that GPU code is made of: the .cu and .cuh, and the headers beside them."""
    found = []
    for folder, _, names in os.walk(os.path.join(root, "src")):
        if not any(name.endswith((".cu", ".cuh")) for name in names):
            continue
        found += [os.path.join(folder, name) for name in names
                  if name.endswith((".cu", ".cuh", ".h"))]
    return sorted(os.path.relpath(path, root) for path in found)


def digest(root):
    total = hashlib.sha256()
    for path in gpu_files(root):
        with open(os.path.join(root, path), "rb") as file:
            total.update(path.encode() + b"\0" + file.read() + b"\0")
    return total.hexdigest()


def compile_one(root, path, architecture, folder):
    """{mangled kernel: (registers, spilled bytes, static shared memory)}"""
    output = os.path.join(folder, f"{path.replace('/', '_')}.{architecture}.cubin")
    cache = ["ccache"] if shutil.which("ccache") else []
    command = [*cache, "nvcc", "-std=c++17", "-O3", "--extended-lambda", "-Isrc", "-Iinclude",
               "-cubin", f"-arch=sm_{architecture}", "-Xptxas", "-v", "-o", output, path]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path} does not compile for sm_{architecture}:\n{done.stderr}")
    kernels, name, spilled = {}, None, 0
    for line in done.stderr.splitlines():
        if match := ENTRY.search(line):
            name, spilled = match.group(1), 0
        elif (match := SPILLS.search(line)) and name:
            spilled = int(match.group(1)) + int(match.group(2))
        elif (match := USED.search(line)) and name:
            shared = SHARED.search(line)
            kernels[name] = (int(match.group(1)), spilled, int(shared.group(1)) if shared else 0)
            name = None
    return kernels


def readable(mangled):
    """Names without parameters, namespaces of the project and the noise of templates."""
    names = subprocess.run(["c++filt", "-p"], input="\n".join(mangled), text=True, check=True,
                           capture_output=True).stdout.splitlines()
    names = [re.sub(r"topknot::(\w+::)*|\(anonymous namespace\)::|^void ", "", n) for n in names]
    return [re.sub(r"\((?:[\w:]+)\)(\d+)", r"\1", n) for n in names]


def write(root, jobs):
    sources = [path for path in gpu_files(root) if path.endswith(".cu")]
    results = {}
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = {pool.submit(compile_one, root, path, sm, folder): sm
                 for path in sources for sm in ARCHITECTURES}
        for number, task in enumerate(concurrent.futures.as_completed(tasks), 1):
            for kernel, numbers in task.result().items():
                results.setdefault(kernel, {})[tasks[task]] = numbers
            print(f"\r{number}/{len(tasks)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    version = re.search(r"release (\S+),", subprocess.run(
        ["nvcc", "--version"], capture_output=True, text=True, check=True).stdout).group(1)
    mangled = list(results)
    rows = sorted(zip(readable(mangled), mangled))
    with open(os.path.join(root, TABLE), "w", encoding="utf-8") as file:
        file.write(HEAD.format(
            version=version, digest=digest(root),
            columns=" | ".join(f"sm_{sm}" for sm in ARCHITECTURES),
            rules=" | ".join("---" for _ in ARCHITECTURES)))
        for name, key in rows:
            cells = ["{} / {} / {}".format(*results[key][sm]) for sm in ARCHITECTURES]
            file.write(f"| `{name}` | " + " | ".join(cells) + " |\n")


def check(root):
    path = os.path.join(root, TABLE)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    problems = []
    stored = re.search(r"^sources: (\w+)$", text, re.M)
    if not stored or stored.group(1) != digest(root):
        problems.append(f"{TABLE} is of other sources: run tools/kernel_table.py --write")
    for file in gpu_files(root):
        with open(os.path.join(root, file), encoding="utf-8") as source:
            if "__CUDA_ARCH__" in source.read():
                problems.append(f"{file} has a branch for an architecture: one source is for all")
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.M)
    if not rows:
        problems.append(f"{TABLE} lists no kernel")
    for name, cells in rows:
        for sm, cell in zip(ARCHITECTURES, cells.split(" | ")):
            registers, spilled, shared = (int(part) for part in cell.split(" / "))
            if spilled and "generic" not in name:
                problems.append(f"{name} spills {spilled} bytes on sm_{sm}")
            if registers > 255 or shared > 48 << 10:
                problems.append(f"{name} takes {registers} registers, {shared} bytes on sm_{sm}")
    for problem in problems:
        print(problem)
    print(f"kernels: {'no problem' if not problems else f'{len(problems)} problems'}")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if arguments.write:
        write(root, arguments.j)
    return check(root)


if __name__ == "__main__":
    sys.exit(main())
