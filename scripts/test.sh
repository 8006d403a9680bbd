#!/usr/bin/env bash
# From a fresh machine to the result of every test: scripts/test.sh [CTEST ARGUMENTS]
# Arguments choose tests, for instance `scripts/test.sh -L fast` or `-R gguf`.
# The last line is "N passed, N failed[, N skipped]"; the exit code is 0 only if none failed and some ran.
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

readonly venv="$topknot_root/.venv"
readonly requirements="$topknot_root/tests/requirements.txt"

# The stamp is written last, so an interrupted installation is done again.
make_venv() {
  if [[ -x $venv/bin/python3 ]] && cmp -s "$requirements" "$venv/requirements.done"; then
    say "python: .venv is ready"
    return
  fi
  local python=/usr/bin/python3
  "$python" -c 'import ensurepip, venv' 2>/dev/null || python=$(command -v python3 || true)
  if [[ -z $python ]]; then
    die "there is no python3, which the tests need: install python3 and python3-venv, then run this again."
  fi
  say "python: making .venv with the packages of tests/requirements.txt"
  "$python" -m venv --clear "$venv" >&2 ||
    die "python could not make a virtual environment: install python3-venv, then run this again."
  "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2 ||
    die "pip could not install tests/requirements.txt: connect to the network (or set pip's proxy or index), then run this again."
  cp "$requirements" "$venv/requirements.done"
}

run_tests() {
  local results="$topknot_build/test-results.xml" status=0
  rm -f "$results"
  say "testing"
  ctest --test-dir "$topknot_build" -j "$(build_jobs)" --output-on-failure --no-tests=error \
    --output-junit "$results" "$@" || status=$?
  "$venv/bin/python3" "$topknot_root/tools/count_tests.py" "$results" "$status"
}

install_packages build test
make_venv
configure_release ON
build_release
run_tests "$@"
