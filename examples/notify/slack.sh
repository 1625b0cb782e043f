#!/bin/sh
# A notice to a Slack channel. SLACK_TOKEN is a bot token with the scope chat:write, SLACK_CHANNEL the
# channel's ID; the bot must be in the channel.
set -eu
# An agent's words must not call the whole channel: <!channel> becomes text.
text=$(printf '%s' "$ALDIS_TEXT" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g')
answer=$(printf 'header = "Authorization: Bearer %s"\n' "$SLACK_TOKEN" |
    curl --silent --show-error --fail --max-time 20 --config - \
        --data-urlencode "channel=$SLACK_CHANNEL" \
        --data-urlencode "text=aldis $ALDIS_RUN, $ALDIS_NOTICE: $text${ALDIS_LINK:+ $ALDIS_LINK}" \
        "${SLACK_URL:-https://slack.com/api/chat.postMessage}")
# Slack answers 200 to what it refuses, too.
case $answer in
*'"ok":true'*) ;;
*) echo "$answer" >&2 && exit 1 ;;
esac
