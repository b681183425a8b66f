// The same call as `termsprawlctl doctor`, written for Node.js alone: two files, one fetch.
// A yardstick for the benchmark.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

const sessionFile = process.env.TERMSPRAWL_SESSION_FILE;

async function call(operation, args) {
  const { token } = JSON.parse(await readFile(sessionFile, "utf8"));
  const endpointFile = join(dirname(dirname(sessionFile)), "endpoint.json");
  const { url } = JSON.parse(await readFile(endpointFile, "utf8"));
  const { protocol, hostname, pathname } = new URL(url);
  if (protocol !== "http:" || hostname !== "127.0.0.1" || pathname !== "/call") {
    throw new Error("Invalid local endpoint");
  }
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ operation, args }),
    redirect: "error",
    signal: AbortSignal.timeout(45_000),
  });
  return response.json();
}

let result;
try {
  result = await call("session_info", {});
} catch (error) {
  result = { ok: false, error: `Tool connection unavailable: ${error.message}` };
}
console.log(JSON.stringify(result, null, 2));
process.exitCode = result.ok ? 0 : 1;
