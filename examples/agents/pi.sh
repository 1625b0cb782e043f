#!/bin/sh
# Pi as an agent: what `--host pi` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/pi.sh
set -eu
exec pi --mode json "$@" -p
