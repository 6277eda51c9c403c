// One conversation: a tree of messages, because an edit or a retry begins a new branch and keeps the old one. What is
// shown is the path from the top along the chosen children. A plain object, so that IndexedDB keeps it as it is.
import { markdownForm, markdownOf, checkedMedia, partOf } from './pictures.js';

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
  if (!conversation.title && node.role === 'user') {
    conversation.title = (node.content.trim().split('\n')[0] || filesOf(node)[0]?.name || '').slice(0, 60);
  }
  return node;
}

// The files that go with a message: { name, size, text }, or of pictures and sounds { name, size, type, data }.
export const filesOf = (node) => node.attachments ?? [];
const textsOf = (node) => filesOf(node).filter(({ data }) => !data);
const mediaIn = (node) => filesOf(node).filter(({ data }) => data);

// A message with its text files, as the model and Markdown get it: each file in a fence that is longer than any in its text.
export function wholeText(node) {
  const blocks = textsOf(node).map(({ name, text }) => {
    const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
    const fence = '`'.repeat(longest + 1);
    const language = /\.(?!pdf$)(\w{1,12})$/i.exec(name)?.[1].toLowerCase() ?? ''; // of a PDF there is plain text
    return `File: ${name}\n${fence}${language}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}\n\n`;
  });
  return blocks.join('') + node.content;
}

// … with its pictures and sounds before it, as Markdown alone gets it.
export const wholeMarkdown = (node) => mediaIn(node).map(markdownOf).join('') + wholeText(node);

// The files at the beginning of such a text, and how long they are there.
export function readFiles(text) {
  const attachments = [];
  let length = 0;
  const read = (form, make) => {
    form.lastIndex = length;
    for (let found = form.exec(text); found; found = form.exec(text)) {
      const attachment = make(found);
      if (!attachment) return;
      attachments.push(attachment);
      length = form.lastIndex;
    }
  };
  read(markdownForm, ([, name, type, data]) => checkedMedia({ name: fileName(name), type, data }));
  read(/File: (.+)\n(`{3,})\w*\n([^]*?\n)\2\n\n?/y, (found) => newFile(found[1], found[3]));
  return { attachments, length };
}

export const fileName = (name) => name.replace(/[\p{C}\u2028\u2029]/gu, ' ').trim().slice(0, 200) || 'file';
export const newFile = (name, text) =>
  ({ name: fileName(name), size: new TextEncoder().encode(text).length, text });

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

// Whether the messages, the names of their files and the title have all these words.
export function matches(conversation, words) {
  const wordsOf = (node) => [node.content, ...filesOf(node).map(({ name }) => name)];
  const text = [conversation.title, ...Object.values(conversation.nodes).flatMap(wordsOf)].join('\n').toLowerCase();
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
  const media = mediaIn(node);
  const text = wholeText(node);
  const parts = [...media.map(partOf), ...(text ? [{ type: 'text', text }] : [])];
  const message = { role: node.role, content: media.length > 0 ? parts : text };
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
