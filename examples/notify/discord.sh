#!/bin/sh
# A notice to a Discord channel. DISCORD_WEBHOOK is the address of the channel's webhook. Needs jq.
set -eu
# 2,000 characters are allowed, and nobody is called, whatever an agent writes.
body=$(jq -n --arg text "aldis $ALDIS_RUN, $ALDIS_NOTICE: $ALDIS_TEXT" --arg link "${ALDIS_LINK:-}" \
    '{content: "\($text[:1500]) \($link[:450])", allowed_mentions: {parse: []}}')
printf 'url = "%s"\n' "$DISCORD_WEBHOOK" |
    curl --silent --show-error --fail --max-time 20 --config - \
        --header 'Content-Type: application/json' --data-raw "$body" >/dev/null
