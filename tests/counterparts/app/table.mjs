// The app's operation table and its checks, from the contract. `?` marks an optional argument.
const MAX_NUMBER = 1_000_000;
const MAX_STRING = 64_000;
const text = { type: "string" };
const number = { type: "number" };
const ids = { type: "ids" };
const among = (...choices) => ({ type: "string", choices });

export const OPERATIONS = {
  session_info: {},
  guide_read: { topic: among("overview", "browser", "terminal", "canvas", "context", "agents", "artifacts") },
  canvas_list: {},
  canvas_select: { nodeIds: ids },
  canvas_move: { nodeId: text, x: number, y: number },
  canvas_resize: { nodeId: text, width: number, height: number },
  canvas_group: { nodeIds: ids, "title?": text },
  sticky_open: { text },
  browser_open: { url: text },
  browser_list: {},
  browser_claim: { nodeId: text },
  browser_transfer: { nodeId: text, agentNodeId: text },
  browser_navigate: { nodeId: text, url: text },
  browser_inspect: { nodeId: text },
  browser_click: { nodeId: text, selector: text },
  browser_type: { nodeId: text, selector: text, text },
  browser_screenshot: { nodeId: text },
  terminal_open: { "title?": text },
  terminal_read: { nodeId: text, "maxChars?": number },
  terminal_submit: { nodeId: text, command: text },
  terminal_input: { nodeId: text, text },
  terminal_interrupt: { nodeId: text },
  terminal_external: { nodeId: text },
  terminal_close: { nodeId: text },
  agent_launch: { agent: among("claude", "codex", "gemini", "grok", "openclaude", "opencode", "custom") },
  agent_status: {},
  agent_cards: {},
  agent_send: { nodeId: text, text, messageId: text },
  agent_task: { taskId: text },
  agent_reply: { taskId: text, text, "state?": among("completed", "failed") },
  context_read: {},
  artifact_open: { path: text, "view?": among("editor", "diff") },
};

function isValid(rule, value) {
  if (rule.type === "number") return typeof value === "number" && Number.isFinite(value) && Math.abs(value) <= MAX_NUMBER;
  if (rule.type === "ids") {
    return Array.isArray(value) && value.length >= 1 && value.length <= 100 && value.every((item) => typeof item === "string" && item.length < 256);
  }
  return typeof value === "string" && value.length <= MAX_STRING && !value.includes("\0") && (!rule.choices || rule.choices.includes(value));
}

/** Calls refuse(text) with the app's words where a request is not allowed. */
export function validate(operation, args, refuse) {
  if (typeof operation !== "string" || !Object.hasOwn(OPERATIONS, operation)) refuse("Unknown operation");
  if (typeof args !== "object" || args === null || Array.isArray(args)) refuse("Expected args object");
  const rules = OPERATIONS[operation];
  for (const name of Object.keys(rules)) {
    if (!name.endsWith("?") && !Object.hasOwn(args, name)) refuse(`Missing argument: ${name}`);
  }
  for (const [name, value] of Object.entries(args)) {
    const rule = rules[name] ?? rules[`${name}?`];
    if (!rule) refuse(`Unknown argument: ${name}`);
    if (!isValid(rule, value)) refuse(`Invalid ${name}`);
  }
}
