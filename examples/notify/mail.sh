#!/bin/sh
# A notice by mail, with the sendmail that every mail program for servers brings. MAIL_TO is the address.
set -eu
# -i: a line with a single dot is text, and does not end the mail.
printf 'To: %s\nSubject: aldis %s: %s\nContent-Type: text/plain; charset=utf-8\n\n%s\n%s\n' \
    "$MAIL_TO" "$ALDIS_RUN" "$ALDIS_NOTICE" "$ALDIS_TEXT" "${ALDIS_LINK:-}" | sendmail -i "$MAIL_TO"
