// ralph-tui: the pattern that its engine tests the agent's output with. The bundle does not export it, so it
// is read out of the installed file.

import { readFileSync } from "node:fs";

import { answer } from "./lines.mjs";

const bundle = readFileSync(`${process.argv[2]}/node_modules/ralph-tui/dist/index.js`, "utf8");
const [, source, flags] = bundle.match(/var PROMISE_COMPLETE_PATTERN = \/(.*)\/(\w*);/);
const uses = bundle.match(/PROMISE_COMPLETE_PATTERN\.test\((\w+\.stdout)\)/);
if (!uses) throw new Error("the engine no longer tests the output with this pattern");
const pattern = new RegExp(source, flags);
await answer((text) => pattern.test(text));
