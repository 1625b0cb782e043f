// What the JavaScript patterns of seeds 002 and 003 find, run by Node itself.
//
// Reads JSON lines of `id` and `text`, writes JSON lines of `id`, `chorus` (type, byte range and
// payload of every match), `turn` (the byte range, or null) and `strip` (the byte range that the
// seed's strip leaves). The patterns are the seeds' own, as facts.

import { readFileSync } from "node:fs";

const SIGNAL_REGEX_GLOBAL = /<chorus>(\w+)(?::\s*(.+?))?<\/chorus>/g;
const TURN_COMPLETE_PATTERN = /TURN_COMPLETE\s*$/;
const stripTurnComplete = (message) => message.replace(/\s*TURN_COMPLETE\s*$/, "").trim();

const bytes = (text, units) => Buffer.byteLength(text.slice(0, units));
const range = (text, start, length) => [bytes(text, start), bytes(text, start + length)];

function golden({ id, text }) {
  const chorus = [...text.matchAll(SIGNAL_REGEX_GLOBAL)].map((match) => [
    match[1],
    ...range(text, match.index, match[0].length),
    match[2]?.trim() || null,
  ]);
  const end = TURN_COMPLETE_PATTERN.exec(text);
  const left = stripTurnComplete(text);
  const start = left === "" ? 0 : text.length - text.trimStart().length;
  if (!text.startsWith(left, start)) throw new Error(`${id}: the strip leaves no part of the text`);
  return {
    id,
    chorus,
    turn: end ? range(text, end.index, end[0].length) : null,
    strip: range(text, start, left.length),
  };
}

const lines = readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
for (const line of lines) process.stdout.write(JSON.stringify(golden(JSON.parse(line))) + "\n");
