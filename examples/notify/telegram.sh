#!/bin/sh
# A notice to a Telegram chat. TELEGRAM_TOKEN is the bot's, TELEGRAM_CHAT the ID of the chat.
set -eu
# 4,096 characters are allowed; no parse_mode, so an agent's words are no markup.
text=$(printf 'aldis %s, %s: %.3500s %s' "$ALDIS_RUN" "$ALDIS_NOTICE" "$ALDIS_TEXT" "${ALDIS_LINK:-}")
printf 'url = "%s/bot%s/sendMessage"\n' "${TELEGRAM_URL:-https://api.telegram.org}" "$TELEGRAM_TOKEN" |
    curl --silent --show-error --fail --max-time 20 --config - \
        --data-urlencode "chat_id=$TELEGRAM_CHAT" --data-urlencode "text=$text" >/dev/null
