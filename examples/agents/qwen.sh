#!/bin/sh
# Qwen Code as an agent: what `--host qwen` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/qwen.sh
set -eu
exec qwen --output-format stream-json --approval-mode auto-edit "$@"
