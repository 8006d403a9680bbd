#!/usr/bin/env bash
# Proves the packages of scripts/package.sh on bare Debian systems: scripts/prove_package.sh FOLDER
# FOLDER (outside the source tree, about 2 GB) keeps the systems between runs; remove it to begin anew.
# The tar.gz must run in a Debian 12 to which nothing was added, and in a Debian 13; its library must serve
# where a compiler is, and nothing of what Topknot uses; the .deb must be installed by apt, and run. What it
# needs: scripts/chroot.sh.
# shellcheck source=chroot.sh
source "$(dirname "${BASH_SOURCE[0]}")/chroot.sh"

usage="usage: scripts/prove_package.sh FOLDER, as root"
if (($# != 1)) || [[ $1 == -* ]]; then die "$usage"; fi
folder=$(realpath -m "$1")
check_chroot_folder "$folder" "$usage"
readonly packages="$topknot_root/build/packages"
readonly data=/srv/models # in a system

# package_of PATTERN
package_of() {
  local found
  found=$(find "$packages" -maxdepth 1 -name "$1" 2>/dev/null)
  if [[ -z $found || $found == *$'\n'* ]]; then
    die "$packages holds no one package $1: run scripts/package.sh, then this again."
  fi
  printf '%s\n' "$found"
}

# begin SUITE NAME: a fresh copy of a bare system, mounted, with the models; sets system.
begin() {
  make_system "$1" "$folder/$1"
  system="$folder/$2"
  say "$2: a fresh copy of $1"
  rm -rf --one-file-system "$system"
  cp -a "$folder/$1/root" "$system"
  copy_configuration "$system"
  mkdir -p "$system$data"
  cp "$topknot_root/models/tiny-glm-dsa.gguf" "$system$data"
  mount_all "$system"
}

# finish NAME
finish() {
  unmount_all
  say "$1: proved on $(cat "$system/etc/debian_version")"
  rm -rf --one-file-system "$system"
}

# expect TEXT COMMAND...: the command must succeed, in the system, and print TEXT.
expect() {
  local text=$1 shown
  shift
  shown=$(enter "$system" / "$@" 2>&1) || die "in $system: $* failed: $shown"
  if [[ $shown != *"$text"* ]]; then die "in $system: $* did not print '$text': $shown"; fi
  say "  ${*:1:3} ...: $(grep -m 1 -F -- "$text" <<<"$shown")"
}

# prove_program PROGRAM: version, a plan from headers alone, an answer.
prove_program() {
  local model=$data/glm-5
  expect "topknot " "$1" --version
  expect "glm-5" "$1" synth --like glm-5-ud-q4_k_xl --headers-only -o "$model.gguf"
  expect "complete" "$1" plan -m "$model-00001-of-00010.gguf" --devices cpu-12-channel-server
  expect "Jane Austen wrote Emma." "$1" run -m $data/tiny-glm-dsa.gguf -p "Who wrote Emma?" --temp 0
}

# apt_install PACKAGE...: in the system.
apt_install() {
  enter "$system" / apt-get update -q >&2 || die "apt-get update failed in $system."
  enter "$system" / env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    "$@" >&2 || die "apt could not install $* in $system."
}

# unpack: the tar.gz at a place nobody expects, with a blank; sets place.
unpack() {
  place="/var/lib/a place $RANDOM"
  mkdir "$system$place"
  tar -C "$system$place" --strip-components=1 -xzf "$(package_of '*.tar.gz')"
}

# prove_tgz SUITE
prove_tgz() {
  begin "$1" "tgz-$1"
  unpack
  prove_program "$place/bin/topknot"
  finish "tgz-$1"
}

prove_library() {
  begin bookworm library
  apt_install g++ cmake make
  unpack
  cp -r "$topknot_root/examples" "$system/srv"
  expect "Configuring done" cmake -S /srv/examples -B /srv/built "-DCMAKE_PREFIX_PATH=$place"
  expect "Built target sparse_decode" cmake --build /srv/built
  expect "glm-dsa, 4 layers" /srv/built/load_gguf $data/tiny-glm-dsa.gguf
  expect "chosen" /srv/built/select_backend cpu-12-channel-server
  expect "largest difference" /srv/built/sparse_decode
  finish library
}

prove_deb() {
  local package
  package=$(package_of '*.deb')
  begin bookworm deb
  cp "$package" "$system/srv"
  apt_install "/srv/$(basename "$package")"
  prove_program topknot
  expect "libtopknot.so" sh -c 'ldconfig -p | grep libtopknot.so'
  enter "$system" / apt-get remove -q -y topknot >&2 || die "apt could not remove topknot in $system."
  if [[ -e $system/usr/bin/topknot ]]; then die "apt left /usr/bin/topknot in $system."; fi
  finish deb
}

package_of '*.tar.gz' >/dev/null
package_of '*.deb' >/dev/null
prove_tgz bookworm
prove_tgz trixie
prove_library
prove_deb
