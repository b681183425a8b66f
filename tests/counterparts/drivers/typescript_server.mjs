// A bridge on the official TypeScript SDK, as one would write it: what ours is measured against.
// usage: typescript_server.mjs PACKAGE_FOLDER TOOLS.json SESSION_FILE
// Lists the tools in a JSON file and passes each call on to the app that the session file leads to.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, toolsFile, sessionFile] = process.argv.slice(2);
const part = path => import(pathToFileURL(join(folder, 'dist/esm', path)));
const { Server } = await part('server/index.js');
const { StdioServerTransport } = await part('server/stdio.js');
const { CallToolRequestSchema, ListToolsRequestSchema } = await part('types.js');

const tools = JSON.parse(readFileSync(toolsFile));
const endpointFile = join(dirname(dirname(sessionFile)), 'endpoint.json');
const server = new Server({ name: 'measured', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
  const { token } = JSON.parse(await readFile(sessionFile));
  const { url } = JSON.parse(await readFile(endpointFile));
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ operation: params.name, args: params.arguments ?? {} }),
  });
  const result = await response.json();
  return { content: [{ type: 'text', text: JSON.stringify(result) }], isError: !result.ok };
});
await server.connect(new StdioServerTransport());
