// What the browser keeps: conversations in IndexedDB, settings in localStorage. Where a browser refuses (private windows,
// full disks) both live as long as the page. Several tabs may have the same conversation: each joins what it has with what
// the others have written, and tells them.
import { merge, seenOf } from './merge.js';

const version = 1;
let database = null;
let onLoss = null; // runs once: what is new is not kept
const seen = new WeakMap(); // conversation → what it has seen in the store
const tabs = new BroadcastChannel('chasqui');

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// `lost` gets the reason when something is not kept, once.
export async function openStore(lost) {
  onLoss = lost;
  try {
    const request = indexedDB.open('chasqui', version);
    request.onupgradeneeded = () => request.result.createObjectStore('conversations', { keyPath: 'id' });
    database = await promised(request);
  } catch {
    database = null; // said when there is something to keep
  }
}

// `changed` gets the ids of conversations that other tabs have written or deleted.
export function listen(changed) {
  if (database) tabs.onmessage = ({ data }) => changed(data);
}

const conversations = () => database.transaction('conversations').objectStore('conversations');

export async function allConversations() {
  const list = database ? await promised(conversations().getAll()) : [];
  for (const conversation of list) seen.set(conversation, seenOf(conversation, conversation));
  return list.sort((a, b) => b.updated - a.updated);
}

// Runs work(store) in one transaction, and done() when that is on the disk: a full disk is found at the very end. The
// next write tries again, for space may have been made.
async function write(work, done) {
  try {
    if (!database) throw new Error('no database');
    await new Promise((resolve, reject) => {
      const transaction = database.transaction('conversations', 'readwrite');
      transaction.oncomplete = () => { done(); resolve(); };
      transaction.onabort = () => reject(transaction.error ?? new Error('the browser ended the transaction'));
      work(transaction.objectStore('conversations'));
    });
  } catch (error) {
    onLoss?.(error);
    onLoss = null;
  }
}

// With `tells` false other tabs hear of it later: while an answer is coming.
export async function keepConversation(conversation, { tells = true } = {}) {
  let sees = null;
  await write((store) => {
    store.get(conversation.id).onsuccess = ({ target: { result: stored } }) => {
      const before = seen.get(conversation);
      if (!stored && before) return; // another tab has deleted it
      const record = stored ? merge(conversation, stored, before) : conversation;
      store.put(record);
      sees = seenOf(record, conversation, before);
    };
  }, () => {
    if (!sees) return;
    seen.set(conversation, sees);
    if (tells) tabs.postMessage(conversation.id);
  });
}

export async function dropConversation(conversation) {
  await write((store) => store.delete(conversation.id), () => {
    seen.delete(conversation); // so that it can be brought back
    tabs.postMessage(conversation.id);
  });
}

// A conversation with what other tabs have made of it: `mine`, where this tab has it. Nothing where it was deleted.
export async function readAgain(id, mine) {
  const stored = await promised(conversations().get(id));
  if (!stored) return null;
  const conversation = mine ?? { ...stored, nodes: {}, chosen: {} };
  const before = seen.get(conversation);
  merge(conversation, stored, before);
  seen.set(conversation, seenOf(stored, conversation, before));
  return conversation;
}

const settingsKey = 'chasqui.settings';
const unset = {
  key: '', theme: 'auto', system: '', model: '', temperature: '', top_p: '', top_k: '', min_p: '', repeat_penalty: '',
  max_tokens: '', seed: '', stop: '', priority: '', tools: '', more: '',
  mcp: '', runTools: false, // addresses of MCP servers; whether their tools run without asking
  ofModels: {}, // name → those of the above that are kept for that model alone
};

export function readSettings() {
  try {
    return { ...structuredClone(unset), ...JSON.parse(localStorage.getItem(settingsKey) ?? '{}') };
  } catch {
    return structuredClone(unset);
  }
}

export function keepSettings(settings) {
  try {
    localStorage.setItem(settingsKey, JSON.stringify(settings));
  } catch {
    // They hold until the page is closed.
  }
}
