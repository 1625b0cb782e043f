// Tells what coding agents report from what they merely mention.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { platform, arch } from "node:process";

const native = load();

function load() {
  const file = `./aldis.${platform}-${arch}.node`;
  try {
    return createRequire(import.meta.url)(file);
  } catch (cause) {
    throw new Error(`@aldis/node has no binary for ${platform}-${arch} (${file})`, { cause });
  }
}

/** A set of dialects, compiled once and used for any number of texts. */
export class Rules {
  #native;

  constructor(dialects = [], { files = [], strict = false } = {}) {
    const names = typeof dialects === "string" ? [dialects] : dialects;
    this.#native = new native.NativeRules(names, files, strict);
  }

  get dialects() {
    return this.#native.dialects;
  }

  scan(text, options) {
    return this.#native.scan(text, options);
  }

  scanner(options) {
    return this.#native.scanner(options);
  }

  /** Scans one message that comes in chunks; gives each finding as soon as it is certain. */
  async *scanStream(chunks, options) {
    const scanner = this.scanner(options);
    for await (const chunk of chunks) yield* scanner.push(chunk);
    yield* scanner.finish();
  }

  instructions(token) {
    return this.#native.instructions(token);
  }

  explain(text, options) {
    return this.#native.explain(text, options);
  }

  /** @internal */
  static nativeOf(rules) {
    return rules?.#native;
  }
}

export function scan(text, dialects = [], options = undefined) {
  return new Rules(dialects).scan(text, options);
}

export function explain(text, rules = new Rules(), options = undefined) {
  return rules.explain(text, options);
}

/** Reads the transcript of a host, a path or its bytes, as messages, each with its origin. */
export async function readTranscript(source, { format = "auto", agent, rules, ...options } = {}) {
  const data = source instanceof Uint8Array ? source : await readFile(source);
  return native.readTranscript(data, format, agent, Rules.nativeOf(rules), options);
}
