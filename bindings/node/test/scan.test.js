// The package itself: the corpus of the Rust tests, chunks, streams, transcripts, errors, memory.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { Rules, explain, readTranscript, scan } from "../index.js";

const root = new URL("../../../", import.meta.url);
const testdata = new URL("testdata/", root);
const lines = (file) => readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
const rows = (name) => lines(new URL(name, testdata));

/** What Rust finds in the texts and transcripts of testdata, as `scripts/bindings` has written it. */
function corpus() {
  const file = process.env.ALDIS_CORPUS;
  assert.ok(file, "ALDIS_CORPUS is not set; run scripts/bindings node");
  return lines(file);
}
const texts = corpus().filter((row) => row.input);
const input = (row) => row.input.text ?? Uint8Array.from(row.input.bytes);
const rulesOf = (row) => new Rules(row.dialects, { strict: row.strict });

/** As Rust writes it: null for what is not there. */
const asRust = (finding) => {
  const optional = { meaning: null, subject: null, payload: null, progress: null, reason: null, hint: null, via: null };
  return { ...optional, ...finding };
};

test("every text of the corpus is judged as in Rust", () => {
  assert.ok(texts.length > 2000);
  for (const row of texts) {
    const found = rulesOf(row).scan(input(row), { origin: row.origin });
    assert.deepEqual(found.map(asRust), row.findings, row.name);
  }
});

for (const size of [1, 7, 4096]) {
  test(`streams of the corpus in chunks of ${size} bytes find the same`, async () => {
    // A stream gives findings when they are certain, so not in text order.
    const inOrder = (findings) => findings.map((it) => JSON.stringify(it, Object.keys(it).sort())).sort();
    for (const row of texts.filter((row) => !row.strict)) {
      const bytes = Buffer.from(input(row));
      const chunks = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      const found = [];
      for await (const finding of rulesOf(row).scanStream(chunks, { origin: row.origin })) found.push(asRust(finding));
      assert.deepEqual(inOrder(found), inOrder(row.findings), row.name);
    }
  });
}

test("every transcript is read as in Rust", async () => {
  const read = corpus().filter((row) => row.transcript);
  assert.ok(read.length > 20);
  for (const { transcript, messages } of read) {
    const got = await readTranscript(new URL(transcript, testdata), { rules: new Rules() });
    const plain = got.map(({ maySignal, findings, ...rest }) => ({
      entry: null, agent: null, at: null, id: null, ...rest, may_signal: maySignal, findings: findings.map(asRust),
    }));
    assert.deepEqual(plain, messages, transcript);
  }
});

test("endings are judged as labelled", () => {
  const claims = (row) => scan(row.text, row.dialect).some((found) => ["approved", "done", "handoff"].includes(found.meaning));
  assert.deepEqual(rows("conformance/endings.jsonl").filter((row) => claims(row) !== row.claim), []);
});

test("hostile files are judged as labelled", () => {
  for (const row of rows("hostile/scan.jsonl")) {
    if (row.attack.includes("priority rule")) continue;
    const text = readFileSync(new URL(`hostile/${row.file}`, testdata));
    assert.equal(scan(text, row.dialect).some((found) => found.counts), row.accept !== "", row.file);
  }
});

test("only the agent's own words count", () => {
  for (const origin of ["user", "tool", "system", "host"]) {
    const [found] = scan("<chorus>COMPLETE</chorus>", "chorus", { origin });
    assert.deepEqual([found.kind, found.reason], ["near_miss", "untrusted_origin"]);
  }
});

test("a finding has all its members", () => {
  const [found] = scan('```pilot-signal\n{"v":2,"type":"status","progress":45,"extra":[1,{"a":null}]}\n```', "pilot");
  assert.deepEqual([found.kind, found.meaning, found.progress], ["signal", "progress", 45]);
  assert.deepEqual(found.fields.extra, [1, { a: null }]);
});

test("tokens", () => {
  const rules = new Rules("chorus");
  const options = { token: "k3", requireToken: true };
  assert.equal(rules.scan("<chorus>COMPLETE</chorus>", options)[0].reason, "wrong_token");
  assert.equal(rules.scan("<chorus>COMPLETE: #k3</chorus>", options)[0].via, "token");
  assert.match(rules.instructions("k3"), /k3/);
});

test("a dialect of one's own", () => {
  const source = readFileSync(new URL("crates/aldis-signal/src/dialect/builtin/promise.toml", root), "utf8");
  assert.deepEqual(new Rules([], { files: [source.replace('name = "promise"', 'name = "ours"')] }).dialects, ["ours"]);
});

test("what is wrong is named", async () => {
  assert.throws(() => new Rules("chorous"), /no dialect is named `chorous`; there are caw/);
  assert.throws(() => new Rules("chorus=X"), /`chorus` has no/);
  assert.throws(() => new Rules([], { files: ["name = 1"] }), /line 1: missing field `syntax`/);
  assert.throws(() => scan("", [], { origin: "me" }), /no origin is named `me`/);
  assert.throws(() => scan("", [], { requireToken: true }), /needs a `token`/);
  await assert.rejects(readTranscript(Buffer.from(""), { format: "word" }), /no format is named `word`/);
  await assert.rejects(readTranscript("/no/such/file"), /ENOENT/);
  const scanner = new Rules("chorus").scanner();
  scanner.finish();
  assert.throws(() => scanner.push("x"), /make a new scanner/);
});

test("half an emoji stops nobody", () => {
  const [found] = new Rules("chorus").scan("Done \ud83d\n\n<chorus>COMPLETE</chorus>");
  assert.deepEqual([found.meaning, found.line], ["done", 3]);
});

test("only texts are texts", () => {
  for (const wrong of [undefined, null, 1, ["x"]]) assert.throws(() => new Rules("chorus").scan(wrong));
});

test("it explains", () => {
  assert.match(explain("I print <promise>COMPLETE</promise> later.", new Rules("promise")), /does not count: in_sentence/);
});

test("the examples of the pages run", async () => {
  const folder = mkdtempSync(join(tmpdir(), "aldis-node-"));
  let ran = 0;
  for (const page of ["bindings/node/README.md", "docs/embedding.md"]) {
    for (const [, block] of readFileSync(new URL(page, root), "utf8").matchAll(/```js\n(.*?)```/gs)) {
      const file = join(folder, `example${ran}.mjs`);
      const resolved = block.replaceAll(/from "@aldis\/node(\/\w+)?"/g, (_, part) => {
        return `from ${JSON.stringify(new URL(`bindings/node${part ?? "/index"}.js`, root).href)}`;
      });
      writeFileSync(file, resolved);
      await import(pathToFileURL(file).href);
      ran += 1;
    }
  }
  rmSync(folder, { recursive: true });
  assert.ok(ran >= 5, `${ran}`);
});

test("memory stays flat", async () => {
  const rules = new Rules();
  const text = "Half of it.\n\n<chorus>PROGRESS: 45</chorus>\nSIGNAL: NOPE\n".repeat(4);
  const transcript = Buffer.from(
    '{"type":"thread.started","thread_id":"t1"}\n' +
      '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"<chorus>COMPLETE</chorus>"}}\n',
  );
  const use = async (times) => {
    for (let number = 0; number < times; number += 1) {
      rules.scan(text);
      if (number % 10) continue;
      const scanner = rules.scanner();
      scanner.push(text);
      scanner.finish();
      await readTranscript(transcript, { rules });
      new Rules("chorus");
    }
    globalThis.gc();
    return process.memoryUsage().rss;
  };
  const before = await use(50_000);
  const grown = (await use(100_000)) - before;
  assert.ok(grown < 8 * 1024 * 1024, `${grown} bytes`);
});
