// ralph-starter: `hasExitSignal`, then `analyzeResponse` and `determineStatus`, as it exports them.

import { answer } from "./lines.mjs";

const loop = `${process.argv[2]}/node_modules/ralph-starter/dist/loop/semantic-analyzer.js`;
const { analyzeResponse, determineStatus, hasExitSignal } = await import(loop);
await answer((text) => hasExitSignal(text) || determineStatus(analyzeResponse(text)) === "done");
