// The line protocol of the kit, for adapters in JavaScript: a function from a text to a verdict.

import { createInterface } from "node:readline";

export async function answer(judge) {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const row = JSON.parse(line);
    // Programs that take strings get what is not UTF-8 with replacement characters.
    const text = row.text ?? Buffer.from(row.bytes, "base64").toString();
    console.log(JSON.stringify({ id: row.id, claim: await judge(text, row) }));
  }
}
