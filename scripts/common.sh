# Shared by the scripts beside it; sourced, never run. Messages go to standard error, so that a script's
# standard output is its result.
# shellcheck shell=bash

set -euo pipefail

topknot_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly topknot_root
readonly topknot_build="$topknot_root/build/release"
readonly topknot_min_gcc=12
readonly topknot_min_cmake=3.25
readonly topknot_kib_per_job=2000000 # the largest translation units take about 2 GB

say() { printf '== %s\n' "$*" >&2; }

# One sentence that says what failed and what to do; nothing else runs after it.
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# --- Debian packages --------------------------------------------------------------------------------

# Needs of the given groups, one a line: "name [other-name ...]".
package_needs() {
  local group
  for group in "$@"; do
    sed -n "s/^$group  *//p" "$topknot_root/scripts/packages.txt"
  done
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

need_is_met() {
  local name
  for name in "$@"; do
    if is_installed "$name"; then return 0; fi
  done
  return 1
}

# First of the names that apt can install here; empty when none.
first_packaged() {
  local name policy
  for name in "$@"; do
    # Read whole: a pipe into `grep -q` would end apt-cache by a signal, which counts as failure.
    policy=$(apt-cache policy "$name" 2>/dev/null || true)
    if grep -q '^  Candidate: [^(]' <<<"$policy"; then
      printf '%s\n' "$name"
      return 0
    fi
  done
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo -- "$@"
  fi
}

# Names to install for the needs on standard input, one a line. Dies on a need that no name meets.
choose_packages() {
  local need name
  while read -r need; do
    # shellcheck disable=SC2086 # a need is a list of words
    name=$(first_packaged $need)
    if [[ -z $name ]]; then
      die "apt offers no package for '$need': check the network and that the main (on Ubuntu also universe) component is enabled, then run this again."
    fi
    printf '%s\n' "$name"
  done
}

# install_packages GROUP...: nothing but a look-up when all are there.
install_packages() {
  if [[ ${TOPKNOT_SKIP_PACKAGES:-} == 1 ]]; then
    say "packages: not looked at (TOPKNOT_SKIP_PACKAGES=1)"
    return
  fi
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    die "this is not Debian or Ubuntu (no apt-get): install the equivalents of the packages in scripts/packages.txt yourself, then run this again with TOPKNOT_SKIP_PACKAGES=1."
  fi
  local missing=() need
  while read -r need; do
    # shellcheck disable=SC2086 # a need is a list of words
    need_is_met $need || missing+=("$need")
  done < <(package_needs "$@")
  if ((${#missing[@]} == 0)); then
    say "packages: all installed"
    return
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "packages are missing and there is no sudo: run 'apt-get install ${missing[*]%% *}' as root, then run this again."
  fi
  say "packages: asking apt for ${missing[*]%% *}"
  as_root apt-get update -q >&2 || say "apt-get update reported errors; going on with the lists at hand"
  local chosen names=()
  chosen=$(printf '%s\n' "${missing[@]}" | choose_packages) || exit 1
  mapfile -t names <<<"$chosen"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    -o Acquire::Retries=3 "${names[@]}" >&2 ||
    die "apt-get could not install ${names[*]}: its reason is above; connect to the network (or set apt's proxy), or, if sudo refused you, have them installed as root, and run this again."
}

# --- Tools ------------------------------------------------------------------------------------------

# version_at_least FOUND NEEDED
version_at_least() {
  printf '%s\n' "$2" "$1" | sort -V -C
}

check_tools() {
  local tool found
  for tool in cmake ninja "${CXX:-g++}"; do
    command -v "$tool" >/dev/null ||
      die "$tool is not on the PATH: install the packages in scripts/packages.txt, then run this again."
  done
  found=$(cmake --version | sed -n '1s/.* //p')
  version_at_least "$found" "$topknot_min_cmake" ||
    die "cmake $found is too old: Topknot needs $topknot_min_cmake or newer (Debian 12, Ubuntu 24.04 or newer have it)."
  if [[ -z ${CXX:-} ]]; then
    found=$(g++ -dumpfullversion -dumpversion)
    version_at_least "$found" "$topknot_min_gcc" ||
      die "g++ $found is too old: Topknot needs $topknot_min_gcc or newer; install a newer one and run this again with CXX=g++-$topknot_min_gcc."
  fi
}

# min(cores, RAM / 2 GB), at least 1. A container's limit counts as its RAM.
build_jobs() {
  local kib limit jobs cores
  kib=$(awk '/^MemTotal:/ {print $2}' /proc/meminfo 2>/dev/null || true)
  kib=${kib:-$topknot_kib_per_job}
  for limit in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    limit=$(cat "$limit" 2>/dev/null || true)
    # Longer than 18 digits is cgroup v1's way to say "no limit".
    if [[ $limit =~ ^[0-9]{1,18}$ ]] && ((limit / 1024 < kib)); then kib=$((limit / 1024)); fi
  done
  jobs=$((kib / topknot_kib_per_job))
  cores=$(nproc 2>/dev/null || echo 1)
  if ((jobs > cores)); then jobs=$cores; fi
  if ((jobs < 1)); then jobs=1; fi
  printf '%s\n' "$jobs"
}

# --- CUDA -------------------------------------------------------------------------------------------

find_nvcc() {
  command -v nvcc || { [[ -x /usr/local/cuda/bin/nvcc ]] && echo /usr/local/cuda/bin/nvcc; } || true
}

# "90;120" for the GPUs present; empty when there is none or no driver.
gpu_architectures() {
  command -v nvidia-smi >/dev/null || return 0
  local found
  found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) || return 0
  sed -n 's/^ *\([0-9][0-9]*\)\.\([0-9]\) *$/\1\2/p' <<<"$found" | sort -un | paste -sd ';'
}

# Sets cuda_arguments. CUDA is never required: it is on for a GPU with a toolkit, or when asked for.
choose_cuda() {
  local nvcc gpus
  cuda_arguments=(-DTOPKNOT_CUDA=OFF)
  if [[ ${TOPKNOT_CUDA:-} == OFF ]]; then return; fi
  nvcc=$(find_nvcc)
  gpus=$(gpu_architectures)
  if [[ -z $nvcc ]]; then
    if [[ ${TOPKNOT_CUDA:-} == ON ]]; then
      die "TOPKNOT_CUDA=ON, but there is no nvcc: install the CUDA toolkit or put its bin folder on the PATH, then run this again."
    fi
    if [[ -n $gpus ]]; then
      say "CUDA: a GPU is here, but no toolkit (nvcc); building for the CPU. Install the CUDA toolkit and run this again to use it."
    fi
    return
  fi
  if [[ -z $gpus && ${TOPKNOT_CUDA:-} != ON ]]; then
    say "CUDA: a toolkit, but no GPU; building for the CPU (TOPKNOT_CUDA=ON builds GPU code all the same)"
    return
  fi
  local architectures=${TOPKNOT_CUDA_ARCHITECTURES:-$gpus}
  cuda_arguments=(-DTOPKNOT_CUDA=ON "-DCMAKE_CUDA_COMPILER=$nvcc")
  if [[ -n $architectures ]]; then
    cuda_arguments+=("-DTOPKNOT_CUDA_ARCHITECTURES=$architectures")
  fi
  say "CUDA: building GPU code for ${architectures:-every architecture} with $nvcc"
}

# --- Configure and build ----------------------------------------------------------------------------

cache_says() { grep -q "^$1:[A-Z]*=$2\$" "$topknot_build/CMakeCache.txt" 2>/dev/null; }

# configure_release TESTS(ON|OFF)
configure_release() {
  local arguments=("-DTOPKNOT_TESTS=$1") cuda_arguments=()
  check_tools
  choose_cuda
  if command -v ccache >/dev/null; then
    arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  say "configuring build/release"
  (cd "$topknot_root" && cmake --preset release "${arguments[@]}" "${cuda_arguments[@]}" >&2) ||
    die "configuring failed: the reason is above; if it is a stale build folder, remove build/release and run this again."
}

# build_release [TARGET]
build_release() {
  local jobs
  jobs=$(build_jobs)
  say "building with $jobs jobs"
  cmake --build "$topknot_build" -j "$jobs" ${1:+--target "$1"} >&2 ||
    die "building failed: the first compiler message above says where; if the compiler was killed, memory ran out, so close other programs and run this again."
}

# Everything that stands between a fresh machine and build/release/topknot.
build_program() {
  install_packages build
  # A tree configured with its tests stays so: turning them off would make the next test run build anew.
  if cache_says TOPKNOT_TESTS ON; then configure_release ON; else configure_release OFF; fi
  build_release product
}
