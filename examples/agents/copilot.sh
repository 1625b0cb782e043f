#!/bin/sh
# Copilot CLI as an agent: what `--host copilot` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/copilot.sh
set -eu
exec copilot --output-format json --allow-tool=write "$@" -p "$(cat)"
