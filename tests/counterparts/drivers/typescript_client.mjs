// List the tools of a stdio server and call one, with an official TypeScript client.
// usage: typescript_client.mjs PACKAGE_FOLDER MODE TOOL JSON_ARGUMENTS COMMAND [WORD ...]
// MODE: "1.x", or for the 2.x client "legacy", "auto" or "pin". CHOOSE in the environment: the answer to the
// server's questions, "" to decline. Prints one JSON object.
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';

const [folder, mode, tool, args, command, ...words] = process.argv.slice(2);
const exported = name => {
  const entry = JSON.parse(readFileSync(join(folder, 'package.json'))).exports[name];
  const file = entry.import.default ?? entry.import;
  return import(pathToFileURL(join(folder, file)));
};
const info = { name: 'driver', version: '1.0.0' };
let Client, StdioClientTransport, options = {};
if (mode === '1.x') {
  ({ Client } = await exported('./client'));
  ({ StdioClientTransport } = await import(pathToFileURL(join(folder, 'dist/esm/client/stdio.js'))));
} else {
  ({ Client } = await exported('.'));
  ({ StdioClientTransport } = await exported('./stdio'));
  options = { versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode } };
}
const choice = process.env.CHOOSE;
const capabilities = choice === undefined ? {} : { elicitation: {} };
const client = new Client(info, { capabilities, ...options });
const asked = [];
if (choice !== undefined) {
  const method = mode === '1.x' ? (await import(pathToFileURL(join(folder, 'dist/esm/types.js')))).ElicitRequestSchema : 'elicitation/create';
  client.setRequestHandler(method, async request => {
    asked.push(request.params.message);
    return choice ? { action: 'accept', content: { decision: choice } } : { action: 'decline' };
  });
}
await client.connect(new StdioClientTransport({ command, args: words, stderr: 'inherit' }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({
  tools: tools.map(entry => entry.name),
  content: result.content,
  isError: Boolean(result.isError),
  structured: result.structuredContent,
  asked,
  server: client.getServerVersion()?.name ?? null,
}));
await client.close();
