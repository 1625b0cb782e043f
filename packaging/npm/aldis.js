#!/usr/bin/env node
// Starts the program of the package for this platform, and becomes it as far as Node can.
"use strict";

const { spawn } = require("node:child_process");
const { chmodSync, accessSync, constants } = require("node:fs");
const { constants: system } = require("node:os");
const { join } = require("node:path");
const platforms = require("./platforms.json");

const NAME = `${process.platform}-${process.arch}`;

/** Whether this is a Linux without the GNU C library, such as Alpine. */
function isMusl() {
  if (process.platform !== "linux") return false;
  try {
    return !process.report.getReport().header.glibcVersionRuntime;
  } catch {
    return false;
  }
}

/** What is wrong, and what to do. */
function missing() {
  const source = "build it from source instead: cargo install aldis";
  if (!platforms[NAME]) {
    const known = Object.keys(platforms).join(", ");
    return [`there is no package of aldis for ${NAME}`, `there is one for ${known}; ${source}`];
  }
  if (isMusl()) {
    return [`the package of aldis for ${NAME} needs the GNU C library, which is not on this system`, source];
  }
  return [
    `the package @aldis/${NAME} is not installed`,
    "it is an optional dependency of aldis; install again and keep these: npm install --include=optional aldis",
  ];
}

function give(lines) {
  process.stderr.write(`error: ${lines[0]}\n       ${lines[1]}\n`);
  process.exit(2);
}

function find() {
  const suffix = process.platform === "win32" ? ".exe" : "";
  let program;
  try {
    program = join(require.resolve(`@aldis/${NAME}/package.json`), "..", "bin", `aldis${suffix}`);
  } catch {
    give(missing());
  }
  try {
    accessSync(program, constants.X_OK);
  } catch {
    // Some package managers lose the permission.
    try {
      chmodSync(program, 0o755);
    } catch {
      give([`${program} cannot be run`, "install aldis again"]);
    }
  }
  return program;
}

/** Runs the program as a child: signals reach it, and how it ends is how we end. */
function run(program, args) {
  const child = spawn(program, args, { stdio: "inherit", windowsHide: true });
  // A terminal sends these to both of us, so it is the program that decides what they mean.
  for (const name of ["SIGINT", "SIGQUIT"]) {
    if (name in system.signals) process.on(name, () => {});
  }
  for (const name of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) {
    if (name in system.signals && process.platform !== "win32") process.on(name, () => child.kill(name));
  }
  child.on("error", (error) => give([`${program} does not start: ${error.message}`, "install aldis again"]));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const program = find();
const args = process.argv.slice(2);
// Newer versions of Node can be replaced by the program, so that nothing stands between it and its caller.
if (typeof process.execve === "function" && process.platform !== "win32") {
  process.execve(program, [program, ...args], process.env);
}
run(program, args);
