#!/usr/bin/env bash
# Proves the scripts on a bare Debian 12: scripts/prove_debian12.sh FOLDER [COMMAND...]
# FOLDER (outside the source tree, about 3 GB) keeps the system between runs; remove it to begin anew.
# Copies the tree into it and runs COMMAND there as root (without one: scripts/test.sh, scripts/build.sh
# and, where the model is there, scripts/demo.sh). What it needs: scripts/chroot.sh.
# shellcheck source=chroot.sh
source "$(dirname "${BASH_SOURCE[0]}")/chroot.sh"

usage="usage: scripts/prove_debian12.sh FOLDER [COMMAND...], as root"
if (($# == 0)) || [[ $1 == -* ]]; then die "$usage"; fi
folder=$(realpath -m "$1")
shift
check_chroot_folder "$folder" "$usage"
readonly system="$folder/root"
readonly tree="/srv/topknot source" # with a blank on purpose

copy_tree() {
  say "copying the tree"
  mkdir -p "$system$tree"
  # What was built there stays, so that a second run shows how quick it is.
  find "$system$tree" -mindepth 1 -maxdepth 1 ! -name build ! -name .venv -exec rm -rf {} +
  tar -C "$topknot_root" --exclude=./build --exclude=./.venv --exclude=./.git -cf - . |
    tar -C "$system$tree" -xf -
}

make_system bookworm "$folder"
copy_configuration "$system"
copy_tree
mount_all "$system"
if (($# > 0)); then
  enter "$system" "$tree" "$@"
  exit
fi
enter "$system" "$tree" scripts/test.sh
enter "$system" "$tree" scripts/build.sh
if [[ -e $system$tree/models/tiny-glm-dsa.gguf ]]; then enter "$system" "$tree" scripts/demo.sh; fi
say "proved on $(cat "$system/etc/debian_version")"
