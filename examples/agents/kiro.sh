#!/bin/sh
# Kiro CLI as an agent: what `--host kiro` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/kiro.sh
set -eu
exec kiro-cli chat --no-interactive "$@" "$(cat)"
