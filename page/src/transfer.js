// Conversations as files: JSON with every version of every message, Markdown with what is shown. JSON that would be larger
// than what is read again is in several files, and one conversation with many pictures may be: its parts have the same id,
// and are one again when they are imported together. What is imported is built anew of the fields that are known, so that
// a file can hold nothing that the page has not made itself.
import {
  addNode, fileName as safeName, filesOf, newConversation, newFile, newId, pathOf, readFiles, wholeMarkdown,
} from './conversation.js';
import { checkedMedia } from './pictures.js';

const format = 'chasqui-conversations';
const bytesMax = 64 * 1024 * 1024; // far more than a message with its files has
const names = { user: 'You', assistant: 'Answer', tool: 'Tool result' };

const bytesOf = (value) => new Blob([JSON.stringify(value)]).size + 64; // with what stands around it

// As files that can be imported: { name, text }.
export function toFiles(conversations) {
  const room = bytesMax - bytesOf({ format });
  const files = [[]];
  let left = room;
  for (const conversation of conversations) {
    const head = { ...conversation, nodes: {} };
    const headBytes = bytesOf(head);
    let part = null;
    for (const node of Object.values(conversation.nodes)) {
      const bytes = bytesOf(node);
      if ((part ? 0 : headBytes) + bytes > left && files.at(-1).length > 0) {
        files.push([]);
        left = room;
        part = null;
      }
      if (!part) {
        part = { ...head, nodes: {} };
        files.at(-1).push(part);
        left -= headBytes;
      }
      part.nodes[node.id] = node;
      left -= bytes;
    }
  }
  const name = (i) => `chasqui-conversations${files.length > 1 ? `-${i + 1}-of-${files.length}` : ''}.json`;
  return files.map((list, i) => ({ name: name(i), text: JSON.stringify({ format, version: 1, conversations: list }) }));
}

export function toMarkdown(conversation) {
  const parts = [`# ${conversation.title || 'Conversation'}`];
  const add = (role, name, text) => parts.push(`<!-- chasqui: ${role} -->\n## ${name}\n\n${text}`);
  if (conversation.system.trim()) add('system', 'System prompt', conversation.system);
  for (const node of pathOf(conversation)) {
    const text = wholeMarkdown(node);
    if (text) add(node.role, names[node.role], text);
  }
  return `${parts.join('\n\n')}\n`;
}

// Gives the file to the browser.
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export function fileName(conversation, ending) {
  const title = (conversation?.title ?? '').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 40);
  return `${title || 'chasqui'}.${ending}`;
}

// The conversations of files; throws an Error whose message says what is wrong with one.
export async function conversationsOf(files) {
  const found = [];
  const parts = [];
  const none = (name) => new Error(`${name} holds no conversation that the page has exported.`);
  for (const file of files) {
    if (file.size > bytesMax) throw new Error(`${file.name} is larger than 64 MiB.`);
    const text = await file.text();
    const isMarkdown = /\.(md|markdown)$/i.test(file.name);
    const list = isMarkdown ? fromMarkdown(text) : fromJson(text);
    if (list.length === 0) throw none(file.name);
    (isMarkdown ? found : parts).push(...list);
  }
  found.push(...joined(parts).map(readConversation).filter((one) => Object.keys(one.nodes).length > 0));
  if (found.length === 0) throw none(files.map(({ name }) => name).join(', '));
  return found;
}

function fromMarkdown(text) {
  const conversation = newConversation('');
  const title = /^# (.*)/.exec(text)?.[1].trim().slice(0, 120);
  let parent = '';
  const form = /^<!-- chasqui: (system|user|assistant|tool) -->\n## .*\n\n/gm;
  let mark = form.exec(text);
  while (mark) {
    const begin = form.lastIndex;
    // What looks like a mark inside of a file is none.
    const { attachments, length } = mark[1] === 'user' ? readFiles(text.slice(begin)) : { attachments: [], length: 0 };
    form.lastIndex = begin + length;
    const next = form.exec(text);
    const content = text.slice(begin + length, next?.index).replace(/\n{1,2}$/, '');
    if (mark[1] === 'system') conversation.system = content;
    else parent = addNode(conversation, parent, { role: mark[1], content, attachments, finish: 'stop' }).id;
    mark = next;
  }
  if (title) conversation.title = title;
  return parent ? [conversation] : [];
}

function fromJson(text) {
  let read;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Error(`The file is not JSON: ${error.message}`);
  }
  if (read?.format !== format || !Array.isArray(read.conversations)) return [];
  return read.conversations;
}

// The parts of a conversation that did not fit into one file.
function joined(parts) {
  const wholes = new Map();
  for (const part of parts) {
    const id = string(part?.id) || newId();
    wholes.set(id, { ...part, nodes: { ...wholes.get(id)?.nodes, ...part?.nodes } });
  }
  return [...wholes.values()];
}

const string = (value) => (typeof value === 'string' ? value : '');
const number = (value) => (Number.isFinite(value) ? value : 0);

function readConversation(from) {
  const out = newConversation(string(from?.system));
  out.title = string(from?.title).slice(0, 120);
  out.updated = number(from?.updated) || out.updated;
  // Parents come before their children, so that nothing hangs in the air and nothing goes in a circle.
  const nodes = Object.values(from?.nodes ?? {}).filter((node) => names[node?.role] && typeof node.id === 'string');
  const newIds = new Map([['', '']]);
  const byParent = Map.groupBy(nodes, (node) => string(node.parent));
  const waiting = [''];
  while (waiting.length > 0) {
    const old = waiting.pop();
    for (const node of (byParent.get(old) ?? []).sort((a, b) => number(a.at) - number(b.at))) {
      if (newIds.has(node.id)) continue;
      newIds.set(node.id, addNode(out, newIds.get(old), readNode(node)).id);
      waiting.push(node.id);
    }
  }
  for (const [parent, child] of Object.entries(from?.chosen ?? {})) {
    const [to, id] = [newIds.get(parent), newIds.get(child)];
    if (to !== undefined && out.nodes[id]?.parent === to) out.chosen[to] = id;
  }
  return out;
}

function readAttachment({ name, text, type, data }) {
  return string(text) ? newFile(name, text) : checkedMedia({ name: safeName(name), type, data });
}

function readNode(from) {
  const files = Array.isArray(from.attachments) ? filesOf(from) : [];
  const attachments = files.filter((file) => string(file?.name)).map(readAttachment).filter(Boolean);
  const calls = Array.isArray(from.tool_calls) ? from.tool_calls.filter((call) => call?.function) : [];
  return {
    role: from.role, content: string(from.content), attachments, reasoning: string(from.reasoning), state: 'done',
    finish: string(from.finish), error: string(from.error), pieces: number(from.pieces), tool_call_id: string(from.tool_call_id),
    tool_calls: calls.map(({ id, function: f }) => ({ id: string(id), type: 'function',
      function: { name: string(f.name), arguments: string(f.arguments) } })),
  };
}
