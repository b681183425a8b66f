// The app's A2A facade (Agent2Agent 0.3), from the contract: cards, message/send and tasks/get over the same tools.

const CARD = "/.well-known/agent-card.json";

function cardOf(url, { nodeId, name, preset, capabilities }) {
  return {
    protocolVersion: "0.3.0",
    name,
    description: `${preset} in termsprawl`,
    version: "1.0.0",
    url: `${url}/a2a/agents/${nodeId}`,
    preferredTransport: "JSONRPC",
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    security: [{ bearer: [] }],
    skills: capabilities.length ? [{ id: "work", name: "Work", description: "Takes a task as text.", tags: ["agent", preset] }] : [],
  };
}

function taskOf(task) {
  const status = { state: task.state, timestamp: new Date(task.updatedAt).toISOString() };
  const part = (text) => [{ kind: "text", text }];
  if (task.state === "failed") {
    status.message = { kind: "message", role: "agent", messageId: `${task.id}-failure`, parts: part(task.response ?? "") };
  }
  return {
    kind: "task",
    id: task.id,
    contextId: task.id,
    status,
    history: [{ kind: "message", role: "user", messageId: task.messageId, taskId: task.id, contextId: task.id, parts: part(task.text) }],
    ...(task.state === "completed" ? { artifacts: [{ artifactId: `${task.id}-answer`, parts: part(task.response) }] } : {}),
  };
}

/** [status, body] of one request below /a2a/ or for a card. */
export async function a2a(request, path, { caller, url, operate, bodyOf, card, find }) {
  const notFound = [404, { ok: false, error: "Unsupported request" }];
  if (path === CARD) return request.method === "GET" ? [200, cardOf(url, card(caller))] : notFound;
  const [, id, rest] = /^\/a2a\/agents\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  const agent = id && find(id);
  if (!agent?.preset) return notFound;
  if (rest === CARD && request.method === "GET") return [200, cardOf(url, card(agent))];
  if (rest || request.method !== "POST") return notFound;
  let call;
  const failed = (code, message) => [200, { jsonrpc: "2.0", id: call?.id ?? null, error: { code, message } }];
  try {
    call = await bodyOf(request);
  } catch {
    return failed(-32600, "Invalid Request");
  }
  if (call?.jsonrpc !== "2.0" || typeof call.method !== "string") return failed(-32600, "Invalid Request");
  try {
    if (call.method === "message/send") {
      const message = call.params?.message;
      const parts = message?.parts;
      const isText = Array.isArray(parts) && parts.length && parts.every((part) => part?.kind === "text" && typeof part.text === "string");
      if (message?.kind !== "message" || message.role !== "user" || !message.messageId || message.taskId || !isText) return failed(-32602, "Invalid params");
      const text = parts.map((part) => part.text).join("\n");
      const task = await operate(caller, "agent_send", { nodeId: id, text, messageId: message.messageId });
      return [200, { jsonrpc: "2.0", id: call.id, result: taskOf(task) }];
    }
    if (call.method === "tasks/get") {
      if (typeof call.params?.id !== "string") return failed(-32602, "Invalid params");
      const task = await operate(caller, "agent_task", { taskId: call.params.id });
      return task.targetNodeId === id ? [200, { jsonrpc: "2.0", id: call.id, result: taskOf(task) }] : failed(-32001, "Task not found");
    }
    return failed(-32601, "Method not found");
  } catch (error) {
    return failed(-32000, error.message);
  }
}
