#!/bin/sh
# A notice to a phone by ntfy. NTFY_URL is the topic: https://ntfy.sh/SOMETHING-NOBODY-GUESSES
# NTFY_TOKEN is only needed for a topic with access control.
set -eu
case $ALDIS_NOTICE in
question | run_ended) priority=high ;;
*) priority=default ;;
esac
# Options come from standard input: what is on a command line, every user of the machine can read.
# A tap on the notice opens the link, if a server makes links: see docs/serve.md.
printf '%s\n%s\n' "${NTFY_TOKEN:+header = \"Authorization: Bearer $NTFY_TOKEN\"}" \
    "${ALDIS_LINK:+header = \"Click: $ALDIS_LINK\"}" |
    curl --silent --show-error --fail --max-time 20 --config - \
        --header "Title: aldis $ALDIS_RUN: $ALDIS_NOTICE" --header "Priority: $priority" \
        --data-raw "$ALDIS_TEXT" "$NTFY_URL" >/dev/null
