// Tools of MCP servers (Model Context Protocol, streamable HTTP), which this browser asks by itself: the page's own server
// never connects to them, and says in its content policy (--webui-mcp-origins) which ones the page may ask.
import { readEvents } from './server.js';

const versions = ['2025-06-18', '2025-03-26'];
const patience = { list: 10_000, call: 120_000 }; // milliseconds
const pagesMost = 50;
const toolsMost = 128; // as many as the server takes in one request

const withLimit = (milliseconds, signal) => AbortSignal.any([AbortSignal.timeout(milliseconds), ...(signal ? [signal] : [])]);

// The message with this id, of an answer that is one message, a list, or a stream of events.
async function replyOf(response, id) {
  const isReply = (message) => message?.id === id && (message.result || message.error);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    return [await response.json()].flat().find(isReply);
  }
  let reply;
  await new Promise((resolve, reject) => {
    readEvents(response, (text) => {
      reply ??= [JSON.parse(text)].flat().find(isReply);
      if (reply) resolve(); // such a stream may stay open
    }).then(resolve, reject);
  });
  return reply;
}

class McpServer {
  // `line` is what a person writes: an address, and behind it a token where one is wanted.
  constructor(line) {
    [this.url, this.token] = line.trim().split(/\s+/);
    this.name = new URL(this.url).host;
    this.sent = 0;
  }

  async post(message, signal) {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    if (this.version) headers['MCP-Protocol-Version'] = this.version;
    if (this.session) headers['Mcp-Session-Id'] = this.session;
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const options = { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }), signal, credentials: 'omit' };
    const response = await fetch(this.url, options).catch((error) => {
      if (!(error instanceof TypeError)) throw error;
      throw new Error('it is down, does not allow this page (CORS), or is not among the server’s --webui-mcp-origins');
    });
    if (!response.ok) throw Object.assign(new Error(`it answered ${response.status}`), { status: response.status });
    this.session = response.headers.get('mcp-session-id') ?? this.session;
    return response;
  }

  async request(method, params, signal) {
    const end = new AbortController();
    const id = ++this.sent;
    try {
      const reply = await replyOf(await this.post({ id, method, params }, AbortSignal.any([end.signal, signal])), id);
      if (!reply) throw new Error('it gave no answer');
      if (reply.error) throw new Error(reply.error.message ?? 'it gave an error');
      return reply.result;
    } finally {
      end.abort(); // what is still open of its stream
    }
  }

  async connect(signal) {
    [this.version, this.session] = [null, null];
    const client = { protocolVersion: versions[0], capabilities: {}, clientInfo: { name: 'chasqui-page', version: '1' } };
    const { protocolVersion } = await this.request('initialize', client, signal);
    if (!versions.includes(protocolVersion)) throw new Error(`it speaks version ${protocolVersion} of MCP`);
    this.version = protocolVersion;
    await this.post({ method: 'notifications/initialized' }, signal);
  }

  // Requests that run at once wait for the same beginning.
  begin(signal) {
    this.beginning ??= this.connect(signal).finally(() => { this.beginning = null; });
    return this.beginning;
  }

  // Once more from the beginning where it has forgotten the session.
  async ask(method, params, signal) {
    if (!this.version) await this.begin(signal);
    const { session } = this;
    try {
      return await this.request(method, params, signal);
    } catch (error) {
      if (error.status !== 404 || !session) throw error;
      if (this.beginning || this.session === session) await this.begin(signal);
      return this.request(method, params, signal);
    }
  }

  async tools(signal) {
    const found = [];
    for (let cursor, pages = 0; pages < pagesMost && (cursor || pages === 0); ++pages) {
      const page = await this.ask('tools/list', cursor ? { cursor } : {}, signal);
      found.push(...page.tools ?? []);
      cursor = page.nextCursor;
    }
    return found;
  }

  async call(name, args, signal) {
    const { content, structuredContent, isError } = await this.ask('tools/call', { name, arguments: args }, signal);
    const texts = (content ?? []).map((part) => (part.type === 'text' ? part.text : JSON.stringify(part)));
    const text = texts.join('\n') || (structuredContent ? JSON.stringify(structuredContent) : '');
    return isError ? `Error: ${text}` : text;
  }
}

export const linesOf = (text) => text.split('\n').filter((line) => line.trim() !== '');

// What is wrong with what a person wrote, or nothing.
export function faultOfLines(text) {
  const wrong = linesOf(text).find((line) => !/^https?:\/\/\S+(\s+\S+)?$/.test(line.trim()) || !URL.canParse(line.trim().split(/\s+/)[0]));
  return wrong ? `Not the address of an MCP server: ${wrong.trim()}` : '';
}

// The tools of all servers that the settings name; of two of the same name the first.
export class McpTools {
  constructor() {
    this.servers = new Map(); // line → McpServer
    this.known = new Map(); // name → { server, tool }
  }

  // Asks all servers; `complain` is told of each that gives no tools, and the others serve.
  async learn(text, complain) {
    const lines = linesOf(text);
    this.servers = new Map(lines.map((line) => [line, this.servers.get(line) ?? new McpServer(line)]));
    const servers = [...this.servers.values()];
    const lists = await Promise.all(servers.map((server) => server.tools(withLimit(patience.list)).catch((error) => {
      complain(`The tools of ${server.name} are missing: ${error.name === 'TimeoutError' ? 'it does not answer' : error.message}.`);
      return [];
    })));
    this.known = new Map();
    for (const [i, list] of lists.entries()) {
      for (const tool of list) if (!this.known.has(tool.name)) this.known.set(tool.name, { server: servers[i], tool });
    }
    if (this.known.size > toolsMost) complain(`These servers have ${this.known.size} tools; the model is told of ${toolsMost}.`);
    this.known = new Map([...this.known].slice(0, toolsMost));
  }

  has(name) {
    return this.known.has(name);
  }

  // As a request has them.
  get functions() {
    return [...this.known.values()].map(({ tool: { name, description, inputSchema } }) =>
      ({ type: 'function', function: { name, ...(description && { description }), parameters: inputSchema ?? { type: 'object' } } }));
  }

  // The result as text; what went wrong is a result, too, which the model may make something of.
  async run({ function: { name, arguments: text } }, signal) {
    try {
      return await this.known.get(name).server.call(name, JSON.parse(text || '{}'), withLimit(patience.call, signal));
    } catch (error) {
      if (signal?.aborted) throw error;
      return `Error: ${error.message}`;
    }
  }
}
