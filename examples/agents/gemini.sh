#!/bin/sh
# Gemini CLI as an agent: what `--host gemini` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/gemini.sh
set -eu
exec gemini --output-format stream-json --skip-trust --approval-mode auto_edit "$@"
