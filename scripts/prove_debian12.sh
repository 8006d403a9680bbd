#!/usr/bin/env bash
# Proves the scripts on a bare Debian 12: scripts/prove_debian12.sh FOLDER [COMMAND...]
# FOLDER (outside the source tree, about 3 GB) keeps the system between runs; remove it to begin anew.
# Copies the tree into it and runs COMMAND there as root (without one: scripts/test.sh, scripts/build.sh
# and, where the model is there, scripts/demo.sh).
# Needs root and debootstrap. The mirror is TOPKNOT_MIRROR, else the first that this system's apt uses;
# apt's, pip's and the certificates' configuration of this system is copied in.
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

readonly suite=bookworm

usage="usage: scripts/prove_debian12.sh FOLDER [COMMAND...], as root"
if (($# == 0)) || [[ $1 == -* ]]; then die "$usage"; fi
if ((EUID != 0)); then die "$usage (a chroot can only be entered by root)"; fi
folder=$(realpath -m "$1")
shift
if [[ $folder/ == "$topknot_root"/* ]]; then
  die "the folder must not be inside the source tree, which is copied into it: give another."
fi
command -v debootstrap >/dev/null ||
  die "debootstrap is not installed: apt-get install debootstrap, then run this again."
readonly system="$folder/root"
# Not where the package ca-certificates would write over it.
readonly certificates=/etc/ssl/certificates-of-host.crt
readonly tree="/srv/topknot source" # with a blank on purpose

find_mirror() {
  if [[ -n ${TOPKNOT_MIRROR:-} ]]; then
    printf '%s\n' "$TOPKNOT_MIRROR"
    return
  fi
  cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n -e 's/^URIs: *\([^ ]*\/debian\)\/* *$/\1/p' \
      -e "s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\/debian\)\/* $suite .*/\2/p" | sed -n 1p
}

make_system() {
  if [[ -e $folder/made ]]; then
    say "system: $system is there"
    return
  fi
  local mirror
  mirror=$(find_mirror)
  if [[ -z $mirror ]]; then
    die "no Debian mirror in apt's sources here: name one with TOPKNOT_MIRROR=URL, then run this again."
  fi
  say "system: debootstrap of $suite"
  rm -rf "$system"
  mkdir -p "$system"
  debootstrap --variant=minbase "$suite" "$system" "$mirror" >"$folder/debootstrap.log" 2>&1 ||
    die "debootstrap failed: $folder/debootstrap.log says why."
  touch "$folder/made"
}

# The new system reaches the network as this one does.
copy_configuration() {
  local item
  for item in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf; do
    if [[ -e $item ]]; then cp -L "$item" "$system$item"; fi
  done
  for item in /etc/apt/apt.conf.d/*; do
    if grep -qiE 'proxy|https?::|verify|check-' "$item"; then cp "$item" "$system/etc/apt/apt.conf.d/"; fi
  done
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
    mkdir -p "$system/etc/ssl"
    cp -L /etc/ssl/certs/ca-certificates.crt "$system$certificates"
  fi
}

copy_tree() {
  say "copying the tree"
  mkdir -p "$system$tree"
  # What was built there stays, so that a second run shows how quick it is.
  find "$system$tree" -mindepth 1 -maxdepth 1 ! -name build ! -name .venv -exec rm -rf {} +
  tar -C "$topknot_root" --exclude=./build --exclude=./.venv --exclude=./.git -cf - . |
    tar -C "$system$tree" -xf -
}

mounted=()
unmount_all() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do
    umount "${mounted[i]}" || say "still mounted: ${mounted[i]}"
  done
  mounted=()
}

# mount_in TYPE OPTIONS NAME
mount_in() {
  mkdir -p "$system/$3"
  mount -t "$1" -o "$2" "$1" "$system/$3" ||
    die "cannot mount $system/$3: run this where mounting is allowed (not in an unprivileged container)."
  mounted+=("$system/$3")
}

mount_all() {
  trap unmount_all EXIT
  mount_in proc nosuid proc
  mount_in sysfs ro sys
  mount_in tmpfs mode=0755,size=64m dev
  local node
  for node in null zero full random urandom tty; do
    cp -a "/dev/$node" "$system/dev/$node"
  done
  mkdir "$system/dev/shm"
  ln -s /proc/self/fd "$system/dev/fd"
  ln -s /proc/self/fd/0 "$system/dev/stdin"
  ln -s /proc/self/fd/1 "$system/dev/stdout"
  ln -s /proc/self/fd/2 "$system/dev/stderr"
  mkdir "$system/dev/pts"
  mount_in devpts newinstance,ptmxmode=0666,mode=0620 dev/pts # terminals, for the tests of a chat
  ln -s pts/ptmx "$system/dev/ptmx"
}

# A clean environment, but for what tells the clients how to reach the network.
enter() {
  local keep=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL \
    PIP_DEFAULT_TIMEOUT; do
    if [[ -n ${!name:-} ]]; then keep+=("$name=${!name}"); fi
  done
  if [[ -e $system$certificates ]]; then
    keep+=("SSL_CERT_FILE=$certificates" "PIP_CERT=$certificates")
  fi
  # shellcheck disable=SC2016 # expanded by the inner shell
  chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    ${keep[@]+"${keep[@]}"} /bin/bash -c 'cd "$1" && shift && exec "$@"' bash "$tree" "$@"
}

make_system
copy_configuration
copy_tree
mount_all
if (($# > 0)); then
  enter "$@"
  exit
fi
enter scripts/test.sh
enter scripts/build.sh
if [[ -e $system$tree/models/tiny-glm-dsa.gguf ]]; then enter scripts/demo.sh; fi
say "proved on $(cat "$system/etc/debian_version")"
