#!/bin/sh
# Kimi Code as an agent: what `--host kimi` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/kimi.sh
set -eu
exec kimi --output-format stream-json "$@" -p "$(cat)"
