# A bare Debian in a folder, for the scripts that prove something in one; sourced, in place of common.sh,
# never run. Needs root and debootstrap. The mirror is TOPKNOT_MIRROR, else the first that this system's apt
# uses; apt's, pip's and the certificates' configuration of this system is copied in.
# shellcheck shell=bash
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Not where the package ca-certificates would write over it.
readonly certificates=/etc/ssl/certificates-of-host.crt

# check_chroot_folder FOLDER USAGE
check_chroot_folder() {
  if ((EUID != 0)); then die "$2 (a chroot can only be entered by root)"; fi
  if [[ $1/ == "$topknot_root"/* ]]; then
    die "the folder must not be inside the source tree, which is copied into it: give another."
  fi
  command -v debootstrap >/dev/null ||
    die "debootstrap is not installed: apt-get install debootstrap, then run this again."
}

find_mirror() {
  if [[ -n ${TOPKNOT_MIRROR:-} ]]; then
    printf '%s\n' "$TOPKNOT_MIRROR"
    return
  fi
  # Either place may be empty.
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
    sed -n -e 's/^URIs: *\([^ ]*\/debian\)\/* *$/\1/p' \
      -e 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\/debian\)\/* .*/\2/p' | sed -n 1p
}

# make_system SUITE FOLDER: FOLDER/root; FOLDER/made stands when it is whole.
make_system() {
  if [[ -e $2/made ]]; then
    say "system: $2/root is there"
    return
  fi
  local mirror
  mirror=$(find_mirror)
  if [[ -z $mirror ]]; then
    die "no Debian mirror in apt's sources here: name one with TOPKNOT_MIRROR=URL, then run this again."
  fi
  say "system: debootstrap of $1"
  rm -rf "$2/root"
  mkdir -p "$2/root"
  debootstrap --variant=minbase "$1" "$2/root" "$mirror" >"$2/debootstrap.log" 2>&1 ||
    die "debootstrap failed: $2/debootstrap.log says why."
  touch "$2/made"
}

# copy_configuration SYSTEM: it reaches the network as this one does.
copy_configuration() {
  local item
  for item in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf; do
    if [[ -e $item ]]; then cp -L "$item" "$1$item"; fi
  done
  for item in /etc/apt/apt.conf.d/*; do
    if grep -qiE 'proxy|https?::|verify|check-' "$item"; then cp "$item" "$1/etc/apt/apt.conf.d/"; fi
  done
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
    mkdir -p "$1/etc/ssl"
    cp -L /etc/ssl/certs/ca-certificates.crt "$1$certificates"
  fi
}

mounted=()
unmount_all() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do
    umount "${mounted[i]}" || say "still mounted: ${mounted[i]}"
  done
  mounted=()
}

# mount_in TYPE OPTIONS PATH
mount_in() {
  mkdir -p "$3"
  mount -t "$1" -o "$2" "$1" "$3" ||
    die "cannot mount $3: run this where mounting is allowed (not in an unprivileged container)."
  mounted+=("$3")
}

# mount_all SYSTEM: until unmount_all, or the end of the script.
mount_all() {
  trap unmount_all EXIT
  mount_in proc nosuid "$1/proc"
  mount_in sysfs ro "$1/sys"
  mount_in tmpfs mode=0755,size=64m "$1/dev"
  local node
  for node in null zero full random urandom tty; do
    cp -a "/dev/$node" "$1/dev/$node"
  done
  mkdir "$1/dev/shm"
  ln -s /proc/self/fd "$1/dev/fd"
  ln -s /proc/self/fd/0 "$1/dev/stdin"
  ln -s /proc/self/fd/1 "$1/dev/stdout"
  ln -s /proc/self/fd/2 "$1/dev/stderr"
  mkdir "$1/dev/pts"
  mount_in devpts newinstance,ptmxmode=0666,mode=0620 "$1/dev/pts" # terminals, for the tests of a chat
  ln -s pts/ptmx "$1/dev/ptmx"
}

# enter SYSTEM FOLDER COMMAND...: a clean environment, but for what tells the clients how to reach the
# network.
enter() {
  local system=$1 folder=$2 keep=() name
  shift 2
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL \
    PIP_DEFAULT_TIMEOUT; do
    if [[ -n ${!name:-} ]]; then keep+=("$name=${!name}"); fi
  done
  if [[ -e $system$certificates ]]; then
    keep+=("SSL_CERT_FILE=$certificates" "PIP_CERT=$certificates")
  fi
  # shellcheck disable=SC2016 # expanded by the inner shell
  chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    ${keep[@]+"${keep[@]}"} /bin/bash -c 'cd "$1" && shift && exec "$@"' bash "$folder" "$@"
}
