#!/bin/sh
# Cursor as an agent: what `--host cursor` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/cursor.sh
set -eu
exec cursor-agent -p --output-format stream-json --force "$@"
