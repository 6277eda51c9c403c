// Tools of MCP servers in a real browser: a server of the protocol on another port, and answers that call its tools.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import test from 'node:test';

import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, eventsOf, openBrowser } from './browser.mjs';

const browser = await openBrowser(test);
const tools = [
  { name: 'add', description: 'Adds numbers', inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } },
  { name: 'fail', inputSchema: { type: 'object' } },
];

// Streamable HTTP: lists come as one JSON answer, results of tools as a stream of events that stays open.
class McpServer {
  static async start(t, { token = '', origin }) {
    const self = new McpServer();
    Object.assign(self, { token, origin: () => origin(), called: [], sessions: new Set(), versions: [] });
    self.http = createServer((request, response) => self.serve(request, response)).listen(0, '127.0.0.1');
    await once(self.http, 'listening');
    t.after(() => {
      self.http.closeAllConnections();
      self.http.close();
    });
    self.url = `http://127.0.0.1:${self.http.address().port}`;
    return self;
  }

  async serve(request, response) {
    const cors = { 'Access-Control-Allow-Origin': this.origin(), 'Access-Control-Expose-Headers': 'Mcp-Session-Id',
      'Access-Control-Allow-Headers': 'content-type, authorization, mcp-session-id, mcp-protocol-version' };
    if (request.method === 'OPTIONS') return response.writeHead(204, cors).end();
    let text = '';
    for await (const part of request) text += part;
    const message = JSON.parse(text);
    const session = request.headers['mcp-session-id'];
    if (this.token && request.headers.authorization !== `Bearer ${this.token}`) return response.writeHead(401, cors).end();
    if (message.method !== 'initialize' && !this.sessions.has(session)) return response.writeHead(404, cors).end();
    if (message.method !== 'initialize') this.versions.push(request.headers['mcp-protocol-version']);
    if (message.id === undefined) return response.writeHead(202, cors).end();
    const reply = JSON.stringify({ jsonrpc: '2.0', id: message.id, ...this.answer(message) });
    if (message.method !== 'tools/call') {
      const made = message.method === 'initialize' ? { 'Mcp-Session-Id': [...this.sessions].at(-1) } : {};
      return response.writeHead(200, { ...cors, ...made, 'Content-Type': 'application/json' }).end(reply);
    }
    response.writeHead(200, { ...cors, 'Content-Type': 'text/event-stream' });
    response.write('data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n');
    return response.write(`event: message\ndata: ${reply}\n\n`);
  }

  answer({ method, params }) {
    if (method === 'initialize') {
      this.sessions.add(`s${this.sessions.size}`);
      return { result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'sums', version: '1' } } };
    }
    if (method === 'tools/list') {
      return { result: params.cursor ? { tools: tools.slice(1) } : { tools: tools.slice(0, 1), nextCursor: 'next' } };
    }
    this.called.push([params.name, params.arguments]);
    if (params.name === 'fail') return { result: { content: [{ type: 'text', text: 'no luck' }], isError: true } };
    return { result: { content: [{ type: 'text', text: `${params.arguments.a + params.arguments.b}` }] } };
  }
}

const calls = (...list) => eventsOf(list.map(([name, args], index) =>
  ({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }] })), 'tool_calls');
const says = (text) => eventsOf([{ content: text }]);

// A page whose policy allows the MCP server, with its address in the settings.
async function opened(t, { token, faults = [] } = {}) {
  let page = '';
  const mcp = await McpServer.start(t, { token, origin: () => page });
  const server = await start(t, [...sim, '--webui-mcp-origins', mcp.url]);
  page = new URL(server.url).origin;
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/^asked another server: .*\/mcp$/, ...faults] });
  return { mcp, server, tab };
}
const listed = (tab, count) => tab.page.waitForFunction((wanted) => window.performance.getEntriesByType('resource')
  .filter(({ name }) => name.endsWith('/mcp')).length >= wanted, { polling: 50 }, count);
const lastSays = (tab, text) => tab.until((wanted) =>
  document.querySelector('.message.assistant:last-child .text')?.innerText.trim() === wanted, text);

test('the model is told of the tools, and a call is run when the person says so', async (t) => {
  const { mcp, tab } = await opened(t, { token: 'let-me-in' });
  await tab.settle({ mcp: `${mcp.url}/mcp let-me-in` });
  await listed(tab, 4); // initialize, initialized, two pages of tools
  const asked = await tab.answerWith('/v1/chat/completions', [calls(['add', { a: 2, b: 3 }]), says('It is five.')]);
  await tab.ask('What is 2 + 3?');
  assert.deepEqual(asked[0].tools.map(({ type, function: { name, parameters } }) => [type, name, parameters.type]),
    [['function', 'add', 'object'], ['function', 'fail', 'object']]);
  assert.deepEqual(mcp.called, [], 'nothing runs by itself');
  await tab.page.click('.call .run');
  await tab.page.waitForFunction(() => document.querySelector('.call textarea').value === '5', { polling: 50 });
  await tab.page.click('.tools .primary');
  await lastSays(tab, 'It is five.');
  assert.deepEqual(asked[1].messages.at(-1), { role: 'tool', tool_call_id: 'call_0', content: '5' });
  assert.deepEqual(mcp.called, [['add', { a: 2, b: 3 }]]);
  assert.ok(mcp.versions.every((version) => version === '2025-06-18'), `${mcp.versions}`);
  assert.deepEqual(await tab.axeFaults(), []);
});

test('tools that run without asking go on until the model answers, also after the server forgot the session', async (t) => {
  const { mcp, tab } = await opened(t, { faults: [/status of 404/] });
  await tab.page.click('#open-settings');
  await tab.page.click('#set-runTools');
  await tab.page.click('#settings button[type=submit]');
  await tab.settle({ mcp: `${mcp.url}/mcp` });
  await listed(tab, 4);
  mcp.sessions.clear();
  const asked = await tab.answerWith('/v1/chat/completions',
    [calls(['add', { a: 1, b: 1 }], ['fail', {}]), calls(['add', { a: 2, b: 2 }]), says('Done.')]);
  await tab.send('Compute.');
  await lastSays(tab, 'Done.');
  assert.deepEqual(mcp.called.map(([name]) => name).sort(), ['add', 'add', 'fail']);
  assert.deepEqual(asked[1].messages.slice(-2).map(({ content }) => content), ['2', 'Error: no luck']);
  assert.equal(asked[2].messages.at(-1).content, '4');
});

test('a tool that no server has waits for the person, whatever the settings say', async (t) => {
  const { mcp, tab } = await opened(t);
  await tab.page.click('#open-settings');
  await tab.page.click('#set-runTools');
  await tab.page.click('#settings button[type=submit]');
  await tab.settle({ mcp: `${mcp.url}/mcp` });
  await listed(tab, 4);
  await tab.answerWith('/v1/chat/completions', [calls(['add', { a: 1, b: 1 }], ['unknown', {}])]);
  await tab.ask('Compute.');
  assert.equal((await tab.texts('.call')).length, 2);
  assert.equal((await tab.texts('.call .run')).length, 1);
  assert.deepEqual(mcp.called, []);
});

test('a server that the policy does not allow is not asked, and the page says why', async (t) => {
  const server = await start(t, sim);
  const mcp = await McpServer.start(t, { origin: () => new URL(server.url).origin });
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/asked another server/, /Content Security Policy/, /Failed to load/] });
  await tab.settle({ mcp: `${mcp.url}/mcp` });
  await tab.until(() => /tools of 127\.0\.0\.1:\d+ are missing: .*--webui-mcp-origins/.test(document.querySelector('#toast').textContent));
  assert.equal(mcp.sessions.size, 0);
  await tab.ask('It answers all the same.');
  assert.equal((await tab.messages()).length, 2);
});

test('what is no address is refused in the settings', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.page.click('#open-settings');
  await tab.page.type('#set-mcp', 'tools.example');
  assert.match(await tab.page.$eval('#set-mcp', (input) => input.validationMessage), /address of an MCP server/);
});
