// Passes requests on to ADDRESS with the token added, and prints its own port: for clients that know no
// tokens. Loopback only. The name of the host stays as the client wrote it, with the server's port.
import http from "node:http";

const [address, token] = process.argv.slice(2);
const server = new URL(address.includes("://") ? address : `http://${address}`);
const proxy = http.createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    headers.host = (headers.host ?? "").replace(/:\d+$/, `:${server.port}`);
    if (headers.origin) {
        headers.origin = headers.origin.replace(/:\d+$/, `:${server.port}`);
    }
    const { method, url: path } = request;
    const passed = http.request({ host: server.hostname, port: server.port, method, path, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
