// A registry on loopback with the packages of a directory, for as long as a command runs:
//     node registry.mjs DIR COMMAND...
// The command has npm_config_registry in its environment. Packages that are not there are 404, which
// for optional ones npm takes for "not on this platform".
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { execFileSync } from "node:child_process";

const [folder, ...command] = process.argv.slice(2);
const packages = new Map();
for (const file of readdirSync(folder).filter((file) => file.endsWith(".tgz"))) {
  const path = join(folder, file);
  const manifest = JSON.parse(execFileSync("tar", ["-xzOf", path, "package/package.json"]));
  packages.set(manifest.name, { file, manifest, bytes: readFileSync(path) });
}

const server = createServer((request, response) => {
  const address = `http://127.0.0.1:${server.address().port}`;
  const path = decodeURIComponent(new URL(request.url, address).pathname).slice(1);
  const archive = [...packages.values()].find(({ file }) => path === `-/${file}`);
  const found = packages.get(path);
  if (archive) {
    response.end(archive.bytes);
  } else if (found) {
    const { file, manifest, bytes } = found;
    const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
    const dist = { tarball: `${address}/-/${file}`, integrity };
    const { version, name } = manifest;
    const versions = { [version]: { ...manifest, dist } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  } else {
    response.statusCode = 404;
    response.end("{}");
  }
});

server.listen(0, "127.0.0.1", () => {
  const registry = `http://127.0.0.1:${server.address().port}/`;
  const env = { ...process.env, npm_config_registry: registry };
  const child = spawn(command[0], command.slice(1), { stdio: "inherit", env });
  child.on("exit", (code) => {
    server.close();
    server.closeAllConnections();
    process.exitCode = code ?? 1;
  });
});
