#!/usr/bin/env bash
# clang-tidy over the project's C++ sources: scripts/tidy.sh [FILE...] (all of src/ without arguments).
# Not part of the tests: it takes minutes. Uses the compile commands of build/release.
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tidy=$(command -v clang-tidy-14 || command -v clang-tidy) ||
  die "clang-tidy is not installed: install the package clang-tidy-14, then run this again."
if [[ ! -e $topknot_build/compile_commands.json ]]; then
  install_packages build test
  configure_release ON
fi
cd "$topknot_root"
files=("$@")
if ((${#files[@]} == 0)); then
  # Only what this build compiles: other files have no compile command.
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\/src\/.*\.cc\)",\{0,1\}$/\1/p' \
    "$topknot_build/compile_commands.json" | sort -u)
fi
say "clang-tidy over ${#files[@]} files"
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$(build_jobs)" "$tidy" -p "$topknot_build" --quiet ||
  die "clang-tidy found problems (above): mend them, or excuse one with NOLINT(check-name) and a reason."
say "clang-tidy: no problem"
