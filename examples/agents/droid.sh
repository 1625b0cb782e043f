#!/bin/sh
# Droid as an agent: what `--host droid` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/droid.sh
set -eu
prompt=$(mktemp)
trap 'rm -f "$prompt"' EXIT
cat >"$prompt"
droid exec -o stream-json --auto low "$@" -f "$prompt"
