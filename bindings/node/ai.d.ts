import type { GenerateTextResult, ModelMessage, StopCondition, generateText } from "ai";
import type { Finding, Rules } from "./index.js";

/** A condition for `stopWhen`: the text of the model's last step has a signal with one of these meanings. */
export function signalled(rules: Rules, options?: { meanings?: string[] }): StopCondition<any, any>;

type Options = Omit<Parameters<typeof generateText>[0], "prompt" | "messages">;

/** Generates, and again with feedback, until the answer has a signal.
 *
 * `signal` is undefined if there was none in `maxRounds` answers. */
export function generateUntilDone(
  options: Options & {
    prompt: string | ModelMessage[];
    rules: Rules;
    meanings?: string[];
    maxRounds?: number;
  },
): Promise<{ result: GenerateTextResult<any, any, any>; signal?: Finding; rounds: number }>;
