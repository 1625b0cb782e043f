#!/bin/sh
# The Stop hook that most people write: block until the signal is somewhere in the transcript.
#     grep_hook.sh LITERAL
input=$(cat)
transcript=$(printf '%s' "$input" | sed -n 's/.*"transcript_path": *"\([^"]*\)".*/\1/p')
grep -qF "$1" "$transcript" && exit 0
echo "Continue. End your message with $1 when the work is done." >&2
exit 2
