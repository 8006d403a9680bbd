#!/usr/bin/env bash
# From a fresh machine to an answer: scripts/demo.sh [MODEL.gguf] [PROMPT]
# Without a model it runs the small one that comes with the source. The answer goes to standard output.
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if (($# > 2)) || [[ ${1:-} == -* ]]; then
  die "usage: scripts/demo.sh [MODEL.gguf] [PROMPT] (quote a prompt of several words)"
fi
model=${1:-$topknot_root/models/tiny-glm-dsa.gguf}
prompt=${2:-Who wrote Emma?}
if [[ ! -e $model ]]; then
  die "there is no model at '$model': give the path of a GGUF file, of one part of a split one, or of its folder."
fi
build_program
say "running $model"
say "prompt: $prompt"
# Greedy: the same answer every time.
exec "$topknot_build/topknot" run -m "$model" -p "$prompt" --temp 0
