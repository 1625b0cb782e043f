#!/bin/sh
# Codex as an agent: what `--host codex` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/codex.sh
set -eu
exec codex exec --json --skip-git-repo-check --sandbox workspace-write "$@" -
