// What the browser keeps: conversations in IndexedDB, settings in localStorage. Where a browser refuses (private windows,
// full disks) both live as long as the page.
const version = 1;
let database = null;
const memory = new Map();

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export async function openStore() {
  try {
    const request = indexedDB.open('chasqui', version);
    request.onupgradeneeded = () => request.result.createObjectStore('conversations', { keyPath: 'id' });
    database = await promised(request);
  } catch {
    database = null;
  }
}

const conversations = (mode) => database.transaction('conversations', mode).objectStore('conversations');

export async function allConversations() {
  const list = database ? await promised(conversations('readonly').getAll()) : [...memory.values()];
  return list.sort((a, b) => b.updated - a.updated);
}

export async function keepConversation(conversation) {
  if (!database) return void memory.set(conversation.id, conversation);
  try {
    await promised(conversations('readwrite').put(conversation));
  } catch {
    database = null;
    memory.set(conversation.id, conversation);
  }
}

export async function dropConversation(id) {
  if (!database) return void memory.delete(id);
  await promised(conversations('readwrite').delete(id));
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
