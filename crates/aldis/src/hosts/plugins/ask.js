import { spawn } from "node:child_process";

const PROGRAM = "aldis";
const TIMEOUT_MS = 10000;
const OUTPUT_MAX = 256 * 1024;

// Calls `aldis hook HOST`. Resolves to its answer, or to nothing whatever goes wrong.
function ask(host, payload, cwd) {
  return new Promise((resolve) => {
    let output = "";
    let child;
    const finish = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const timer = setTimeout(() => {
      child?.kill("SIGKILL");
      finish(undefined);
    }, TIMEOUT_MS);
    try {
      child = spawn(PROGRAM, ["hook", host], { cwd, stdio: ["pipe", "pipe", "ignore"] });
    } catch {
      finish(undefined);
      return;
    }
    child.on("error", () => finish(undefined));
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (part) => {
      output += part;
      if (output.length > OUTPUT_MAX) child.kill("SIGKILL");
    });
    child.on("close", (code) => {
      try {
        finish(code === 0 ? JSON.parse(output) : undefined);
      } catch {
        finish(undefined);
      }
    });
    child.stdin.end(JSON.stringify(payload));
  });
}
