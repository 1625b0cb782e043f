#!/bin/sh
# OpenCode as an agent: what `--host opencode` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/opencode.sh
set -eu
exec opencode run --format json "$@" "$(cat)"
