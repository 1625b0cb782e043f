// Clients of `/mcp`, each sending claims one after another, and how long the answers take.
import fs from "node:fs";
import http from "node:http";

const [address, file] = process.argv.slice(2);
const server = new URL(address);
const tokens = fs.readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line).token);
const CLIENTS = 64;
const CALLS = 14;

function call(agent, token, id) {
    const body = JSON.stringify({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { name: "complete", arguments: { summary: `done ${id}` } },
    });
    const headers = {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
        "content-length": Buffer.byteLength(body),
    };
    const began = process.hrtime.bigint();
    return new Promise((resolve, reject) => {
        const request = http.request(
            { agent, host: server.hostname, port: server.port, path: "/mcp", method: "POST", headers },
            (response) => {
                let text = "";
                response.on("data", (chunk) => (text += chunk));
                response.on("end", () => {
                    const took = Number(process.hrtime.bigint() - began) / 1e6;
                    text.includes('"accepted":true') ? resolve(took) : reject(new Error(text));
                });
            },
        );
        request.on("error", reject);
        request.end(body);
    });
}

async function measure(name, tokenOf) {
    const times = [];
    const began = process.hrtime.bigint();
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
        const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
        for (let number = 0; number < CALLS; number++) {
            times.push(await call(agent, tokenOf(client), client * CALLS + number));
        }
        agent.destroy();
    });
    await Promise.all(clients);
    const seconds = Number(process.hrtime.bigint() - began) / 1e9;
    times.sort((one, other) => one - other);
    const at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))].toFixed(1);
    const rate = Math.round(times.length / seconds);
    console.log(`${name}: ${times.length} claims, ${rate}/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

await measure("64 clients, a run each", (client) => tokens[client % tokens.length]);
await measure("64 clients, one run", () => tokens[0]);
