// What an agent reports in a message, and what to answer: shared by the adapters.

/** After these an agent may stop: it is done, or cannot go on without somebody else. */
export const STOPS = ["done", "failed", "blocked", "needs_human", "needs_help"];

export function signalOf(findings, meanings) {
  return findings.findLast((found) => found.counts && meanings.includes(found.meaning));
}

export function feedback(rules, findings) {
  const miss = findings.findLast((found) => !found.counts);
  if (miss) return `What you wrote about ${miss.signal} does not count (${miss.reason}): ${miss.hint}`;
  return `You stopped without reporting how your work ended.\n\n${rules.instructions()}`;
}
