#!/bin/sh
# Goose as an agent: what `--host goose` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/goose.sh
set -eu
exec goose run --output-format stream-json "$@" -i -
