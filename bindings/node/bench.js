// Measures how fast Node scans a text of the benchmark, in MB/s: see `scripts/bindings bench`.

import { readFileSync } from "node:fs";
import { argv } from "node:process";

import { Rules } from "./index.js";

const MESSAGE = 8192;
const rules = new Rules();
const data = readFileSync(argv[2]);
const text = data.toString();
const pieces = [];
for (let at = 0; at < data.length; at += MESSAGE) pieces.push(data.subarray(at, at + MESSAGE));
const texts = pieces.map((piece) => piece.toString());

function rate(scan) {
  const begin = process.hrtime.bigint();
  scan();
  return data.length / 1e6 / (Number(process.hrtime.bigint() - begin) / 1e9);
}

const figures = {
  whole: rate(() => rules.scan(data)),
  messages: rate(() => pieces.map((piece) => rules.scan(piece).length)),
  whole_text: rate(() => rules.scan(text)),
  messages_text: rate(() => texts.map((piece) => rules.scan(piece).length)),
  found: rules.scan(data).length,
};
console.log(JSON.stringify(figures));
