// Builds the native part of the package for this machine: `npm run build`.

import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { arch, env, platform } from "node:process";

const libraries = { darwin: "libaldis_node.dylib", win32: "aldis_node.dll" };
const target = resolve(env.CARGO_TARGET_DIR ?? "../target");
const options = ["--quiet", "--release", "--locked", "--package", "aldis-node", "--target-dir", target];
execFileSync("cargo", ["build", ...options], { stdio: "inherit" });
const binary = `aldis.${platform}-${arch}.node`;
// A binary that a process has open must not be written over.
rmSync(binary, { force: true });
copyFileSync(resolve(target, "release", libraries[platform] ?? "libaldis_node.so"), binary);
