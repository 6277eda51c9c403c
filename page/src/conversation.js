// One conversation: a tree of messages, because an edit or a retry begins a new branch and keeps the old one. What is
// shown is the path from the top along the chosen children. A plain object, so that IndexedDB keeps it as it is.
export const newId = () => crypto.randomUUID?.() ?? `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;

const top = '';

export function newConversation(system) {
  const now = Date.now();
  return { id: newId(), title: '', system, created: now, updated: now, nodes: {}, chosen: {} };
}

export function childrenOf(conversation, parent) {
  return Object.values(conversation.nodes).filter((node) => node.parent === parent).sort((a, b) => a.at - b.at);
}

// What is shown, from the first message to the last.
export function pathOf(conversation) {
  const path = [];
  for (let id = conversation.chosen[top]; id; id = conversation.chosen[id]) path.push(conversation.nodes[id]);
  return path;
}

export function addNode(conversation, parent, fields) {
  const siblings = childrenOf(conversation, parent);
  const node = {
    id: newId(), parent, at: (siblings.at(-1)?.at ?? 0) + 1, role: 'user', content: '', reasoning: '', tool_calls: [],
    state: 'done', ...fields,
  };
  conversation.nodes[node.id] = node;
  conversation.chosen[parent] = node.id;
  conversation.updated = Date.now();
  if (!conversation.title && node.role === 'user') conversation.title = node.content.trim().split('\n')[0].slice(0, 60);
  return node;
}

export function addAnswer(conversation, parent) {
  return addNode(conversation, parent, {
    role: 'assistant', state: 'streaming', pieces: 0, first_ms: null, elapsed_ms: 0, waits: '', finish: '',
    usage: null, timings: null, error: '', ...newStream(),
  });
}

// The name under which the server keeps an answer, and how many bytes of it have come.
export const newStream = () => ({ stream: `page-${newId()}`, offset: 0, begun: Date.now() });

export const lastId = (conversation) => pathOf(conversation).at(-1)?.id ?? top;

// Another branch beside `node`: -1 before it, 1 after it.
export function choose(conversation, node, step) {
  const siblings = childrenOf(conversation, node.parent);
  const other = siblings[siblings.indexOf(node) + step];
  if (other) conversation.chosen[node.parent] = other.id;
}

// Takes a message away with everything that follows it; gives what brings it back.
export function removeNode(conversation, node) {
  const removed = [node];
  for (const one of removed) removed.push(...childrenOf(conversation, one.id));
  for (const { id } of removed) delete conversation.nodes[id];
  const sibling = childrenOf(conversation, node.parent).at(-1);
  if (sibling) conversation.chosen[node.parent] = sibling.id;
  else delete conversation.chosen[node.parent];
  return () => {
    for (const one of removed) conversation.nodes[one.id] = one;
    conversation.chosen[node.parent] = node.id;
  };
}

// Tokens that the slot held after the last answer, or nothing where no answer has said so yet.
export function tokensUsed(conversation) {
  const last = pathOf(conversation).findLast((node) => node.usage);
  return last ? last.usage.prompt_tokens + last.usage.completion_tokens : null;
}

// Whether any message, or the title, has all these words.
export function matches(conversation, words) {
  const text = [conversation.title, ...Object.values(conversation.nodes).map((node) => node.content)].join('\n').toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

// What the server gets for `answer`: the path down to it, and what is there of it already.
export function messagesFor(conversation, answer) {
  const messages = answer.content ? [messageOf(answer)] : [];
  for (let node = conversation.nodes[answer.parent]; node; node = conversation.nodes[node.parent]) messages.unshift(messageOf(node));
  if (conversation.system.trim()) messages.unshift({ role: 'system', content: conversation.system });
  return messages;
}

function messageOf(node) {
  const message = { role: node.role, content: node.content };
  if (node.role === 'tool') message.tool_call_id = node.tool_call_id;
  if (node.role === 'assistant' && node.tool_calls.length > 0) message.tool_calls = node.tool_calls;
  return message;
}

// The answers that were coming when the page was closed. Those without a name keep what they had.
export function interrupted(conversation) {
  const coming = Object.values(conversation.nodes).filter((node) => node.state === 'streaming');
  for (const node of coming.filter((one) => !one.stream)) {
    node.state = 'stopped';
    node.error = 'The answer was cut off when the page was closed.';
  }
  return coming.filter((node) => node.stream);
}
