// Prints a package.json: `node manifest.mjs VERSION` for `aldis`, `node manifest.mjs VERSION TARGET`
// for the package with the program for a target.
import { readFileSync } from "node:fs";

const platforms = JSON.parse(readFileSync(new URL("platforms.json", import.meta.url)));
const [version, target] = process.argv.slice(2);
const common = {
  version,
  license: "MIT OR Apache-2.0",
  repository: { type: "git", url: "git+https://github.com/aldis-dev/aldis.git" },
};

function main() {
  const names = Object.keys(platforms).map((name) => `@aldis/${name}`);
  return {
    name: "aldis",
    description: "Keeps coding agents working until the job is provably done",
    ...common,
    keywords: ["claude-code", "codex", "agent", "stop-hook", "loop", "mcp"],
    bin: { aldis: "bin/aldis.js" },
    files: ["bin", "LICENSE-APACHE", "LICENSE-MIT"],
    engines: { node: ">=18" },
    optionalDependencies: Object.fromEntries(names.map((name) => [name, version])),
  };
}

function platform() {
  const found = Object.entries(platforms).find(([, platform]) => platform.target === target);
  if (!found) {
    console.error(`error: npm/platforms.json has no platform for ${target}`);
    process.exit(1);
  }
  const [name, { os, cpu, libc }] = found;
  return {
    name: `@aldis/${name}`,
    description: `The program aldis for ${name}`,
    ...common,
    os: [os],
    cpu: [cpu],
    ...(libc ? { libc: [libc] } : {}),
    files: ["bin", "LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"],
    // Yarn must unpack it: a program cannot be run from an archive.
    preferUnplugged: true,
  };
}

console.log(JSON.stringify(target ? platform() : main(), null, 2));
