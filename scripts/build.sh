#!/usr/bin/env bash
# Builds build/release/topknot: installs the packages that are missing, configures, compiles.
# TOPKNOT_CUDA=ON|OFF and TOPKNOT_CUDA_ARCHITECTURES="90;120" override what the machine suggests.
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if (($# > 0)); then die "usage: scripts/build.sh (it takes no arguments)"; fi
build_program
say "built $topknot_build"
