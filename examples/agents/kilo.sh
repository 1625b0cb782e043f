#!/bin/sh
# Kilo Code as an agent: what `--host kilo` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/kilo.sh
set -eu
exec kilo run --format json "$@" "$(cat)"
