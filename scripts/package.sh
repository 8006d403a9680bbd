#!/usr/bin/env bash
# Makes what strangers' machines get, in build/packages: a tar.gz that runs wherever it is unpacked, and a
# .deb. The paths go to standard output. TOPKNOT_CUDA as in scripts/build.sh.
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if (($# > 0)); then die "usage: scripts/package.sh (it takes no arguments)"; fi
readonly packages="$topknot_root/build/packages"
install_packages build package
build_program
rm -rf "$packages"
for generator in TGZ DEB; do
  say "packing: $generator"
  cpack --config "$topknot_build/CPackConfig.cmake" -G "$generator" -B "$packages" >&2 ||
    die "cpack could not make a $generator package: its reason is above."
done
rm -rf "$packages/_CPack_Packages"
find "$packages" -name 'topknot*' ! -name '*.sha256'
