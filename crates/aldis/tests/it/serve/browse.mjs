// Opens a page in a real browser, on a desk and then as on a phone, and prints what it has become
// each time once it shows what is wanted, and how wide it is.
//
// node browse.mjs BROWSER PROFILE ADDRESS PICTURES WANTED...

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const [browser, profile, address, pictures, ...wanted] = process.argv.slice(2);
const pause = (millis) => new Promise((done) => setTimeout(done, millis));

const child = spawn(
  browser,
  [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    `--user-data-dir=${profile}`,
    `--window-size=1400,1000`,
    "about:blank",
  ],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
const [, , , orders, answers] = child.stdio;

// Messages are JSON, each ended by a zero.
const waiting = new Map();
let rest = "";
answers.on("data", (bytes) => {
  const parts = (rest + bytes).split("\0");
  rest = parts.pop();
  for (const message of parts.map((part) => JSON.parse(part))) {
    waiting.get(message.id)?.(message.result ?? {});
  }
});
let last = 0;
const ask = (method, params = {}, sessionId = undefined) => {
  last += 1;
  const answer = new Promise((done) => waiting.set(last, done));
  orders.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
  return answer;
};

const { targetId } = await ask("Target.createTarget", { url: address });
const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
const evaluate = async (expression) => {
  const answer = await ask("Runtime.evaluate", { expression }, sessionId);
  return answer.result?.value;
};
const look = async (width) => {
  const size = { width, height: 1000, deviceScaleFactor: 1, mobile: width < 600 };
  await ask("Emulation.setDeviceMetricsOverride", size, sessionId);
  await ask("Page.reload", {}, sessionId);
  let html = "";
  for (let tries = 0; tries < 300; tries += 1) {
    await pause(100);
    html = (await evaluate("document.documentElement.outerHTML")) ?? "";
    if (wanted.every((text) => html.includes(text))) break;
  }
  const { data } = await ask("Page.captureScreenshot", {}, sessionId);
  if (data) writeFileSync(`${pictures}-${width}.png`, Buffer.from(data, "base64"));
  return { html, width: await evaluate("document.documentElement.scrollWidth") };
};
// The link logs in once; from then on there is a cookie.
await pause(1000);
const views = [await look(1400), await look(400)];
process.stdout.write(JSON.stringify(views));
await ask("Browser.close");
await new Promise((done) => {
  child.on("exit", done);
  setTimeout(done, 5000);
});
process.exit(0);
