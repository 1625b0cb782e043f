import type { PathLike } from "node:fs";

export type Text = string | Uint8Array;
export type Origin = "assistant" | "host" | "subagent" | "system" | "tool" | "user";

export interface ScanOptions {
  /** Who wrote it, `assistant` by default; nobody else's words count. */
  origin?: Origin;
  /** The run token that the agent was told to repeat. */
  token?: string;
  /** Refuse signals without the token. */
  requireToken?: boolean;
}

/** A signal, or a near miss: something that looks like a signal and does not count. */
export interface Finding {
  kind: "signal" | "near_miss";
  counts: boolean;
  dialect: string;
  /** The canonical name of the signal, or of the one that a near miss resembles. */
  signal: string;
  /** `done`, `blocked`, `progress`, ...; undefined for a near miss. */
  meaning?: string;
  subject?: string;
  payload?: string;
  progress?: number;
  fields: Record<string, unknown>;
  warnings: string[];
  /** Why a near miss does not count: a stable code. */
  reason?: string;
  /** What to write instead of a near miss. */
  hint?: string;
  /** How many later near misses of its kind it stands for. */
  more: number;
  /** How a signal came: `token` with the run token. */
  via?: "said" | "token";
  origin: Origin;
  /** From 1; the column, `start` and `end` count bytes of UTF-8. */
  line: number;
  column: number;
  start: number;
  end: number;
  raw: string;
}

/** A message of a transcript. */
export interface Message {
  index: number;
  /** The line of the file, from 1. */
  entry?: number;
  origin: Origin;
  agent?: string;
  sidechain: boolean;
  /** Whether it is part of the conversation as it stands: not rewound, not of another session. */
  live: boolean;
  /** Whether a signal in it can count. */
  maySignal: boolean;
  at?: string;
  id?: string;
  text: string;
  findings: Finding[];
}

/** A scan of one message that comes in chunks, cut anywhere. */
export interface Scanner {
  push(chunk: Text): Finding[];
  finish(): Finding[];
}

/** A set of dialects, compiled once and used for any number of texts. */
export class Rules {
  /** Names of built-in dialects (`promise=TEXT` and `turn=KEYWORD` included) and the texts of dialect
   * files; all built-in ones where neither is given. */
  constructor(dialects?: string | string[], options?: { files?: string[]; strict?: boolean });
  get dialects(): string[];
  scan(text: Text, options?: ScanOptions): Finding[];
  scanner(options?: ScanOptions): Scanner;
  /** Scans one message that comes in chunks; gives each finding as soon as it is certain. */
  scanStream(chunks: AsyncIterable<Text> | Iterable<Text>, options?: ScanOptions): AsyncGenerator<Finding, void>;
  /** The instructions an agent needs to write signals of these dialects. */
  instructions(token?: string): string;
  /** Describes each signal and near miss in a text: whether it counts, and if not, why. */
  explain(text: Text, options?: ScanOptions): string;
}

/** Scans one text. Programs that scan more than one make their `Rules` once. */
export function scan(text: Text, dialects?: string | string[], options?: ScanOptions): Finding[];
export function explain(text: Text, rules?: Rules, options?: ScanOptions): string;
/** Reads the transcript of a host as messages, each with its origin, off the main thread. `format` is a
 * host (`claude-code`, `codex`) or a format; with `rules`, each message has its findings. */
export function readTranscript(
  source: PathLike | Uint8Array,
  options?: { format?: string; agent?: string; rules?: Rules; token?: string; requireToken?: boolean },
): Promise<Message[]>;
