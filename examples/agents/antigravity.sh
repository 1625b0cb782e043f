#!/bin/sh
# Antigravity CLI as an agent: what `--host antigravity` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/antigravity.sh
set -eu
exec agy --output-format stream-json --add-dir . "$@" -p "$(cat)"
