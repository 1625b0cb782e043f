#!/bin/sh
# Amp as an agent: what `--host amp` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/amp.sh
set -eu
exec amp --execute --stream-json "$@"
