// The contract of docs/fleet.md: what routers, scrapers and operators of many nodes rely on.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, endless, post, refused, retryAfter, streamChat, user } from './client.mjs';
import { parseMetrics } from './metrics.mjs';
import { askAdmin, hangAfter, run, sim, start } from './server.mjs';

const { describe, it } = test;

const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-fleet-'));
test.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));

// The address that the server printed for this kind of door.
function printed(server, kind) {
  const line = server.stdout.map((text) => /^listening on (\S+) for (.+)$/.exec(text)).find((match) => match?.[2] === kind);
  assert.ok(line, `no address for ${kind}: ${server.stdout.join('; ')}`);
  return line[1];
}

const keyFile = path.join(folder, 'keys');
writeFileSync(keyFile, 'a name=alice\nroot name=root admin=yes\n');

describe('the admin listener', async () => {
  const local = path.join(folder, 'admin.sock');
  const server = await start(test, [...sim, '-np', '2', '-c', '200000', '--api-key-file', keyFile, '--admin-listen', `127.0.0.1:0,${local}`]);
  server.key = 'a';
  const admin = printed(server, 'operators');
  const get = (target, headers) => askAdmin(admin, 'GET', target, headers);

  it('needs no key for what scrapers and probes read', async () => {
    assert.equal((await server.fetch('/metrics')).status, 401);
    const metrics = parseMetrics((await get('/metrics')).text);
    assert.equal(metrics.sum('vllm:num_requests_running'), 0);
    assert.equal((await get('/health')).text, '{"status":"ok"}');
    assert.equal((await get('/ready')).text, '{"status":"ready"}');
    assert.match((await get('/version')).text, /^\{"version":"\d+\.\d+\.\d+/);
  });

  it('shows what runs, with the names of tenants', async () => {
    const stream = await streamChat(server, 'go on', endless, { headers: { authorization: 'Bearer a' } });
    await stream.nextText();
    const { sequences } = JSON.parse((await get('/debug/sequences')).text);
    assert.deepEqual(sequences.map(({ tenant }) => tenant), ['alice']);
    assert.equal((await get('/debug/trace?seconds=1')).status, 200);
    stream.leave();
    await server.idle();
  });

  it('has no routes of clients', async () => {
    for (const target of ['/v1/models', '/props', '/slots', '/v1/sessions', '/v1/stream', '/']) {
      assert.equal((await get(target)).status, 404, target);
    }
    for (const target of ['/v1/chat/completions', '/completion', '/v1/embeddings', '/models/load']) {
      assert.equal((await askAdmin(admin, 'POST', target)).status, 404, target);
    }
    assert.equal((await askAdmin(admin, 'POST', '/metrics')).status, 405);
    assert.equal((await server.fetch('/drain', { method: 'POST', headers: { authorization: 'Bearer root' } })).status, 404);
  });

  it('is also a Unix socket of the user', async () => {
    assert.equal(statSync(local).mode & 0o777, 0o600);
    assert.match((await askAdmin(`unix:${local}`, 'GET', '/metrics')).text, /^# HELP /);
  });

  it('lets no web page in', async () => {
    const drain = (headers) => askAdmin(admin, 'POST', '/drain', headers);
    assert.equal((await drain({ origin: 'https://evil.example' })).status, 403);
    assert.equal((await drain({ origin: server.url })).status, 403, 'not even the chat page of the same server');
    assert.equal((await drain({ origin: 'null' })).status, 403);
    assert.equal((await drain({ host: 'evil.example', origin: 'http://evil.example' })).status, 421, 'DNS rebinding');
    assert.equal((await get('/metrics', { host: 'evil.example' })).status, 421);
    assert.equal((await drain({ 'sec-fetch-site': 'cross-site' })).status, 415);
    assert.equal((await get('/ready')).status, 200, 'none of them has drained the server');
  });
});

describe('drain control', async () => {
  const flags = [...sim, '--sim-step', '2', '-np', '2', '-c', '2000000', '--admin-listen', '127.0.0.1:0'];

  it('takes the node out of service and back, and cuts nothing', async (t) => {
    const server = await start(t, flags);
    const admin = printed(server, 'operators');
    const drain = async (method) => JSON.parse((await askAdmin(admin, method, '/drain')).text);
    assert.deepEqual(await drain('GET'), { state: 'open', requests: 0 });
    const stream = await streamChat(server, 'go on', { ignore_eos: true, max_tokens: 3000 });
    await stream.nextText();
    const whole = stream.collect();
    assert.deepEqual(await drain('POST'), { state: 'drained', requests: 1 });
    assert.deepEqual(await drain('POST'), { state: 'drained', requests: 1 }, 'again');
    for (const ready of [await server.fetch('/ready'), new Response((await askAdmin(admin, 'GET', '/ready')).text, { status: 503, headers: { 'content-type': 'application/json' } })]) {
      assert.match((await refused(ready, 503)).message, /drained/);
    }
    assert.equal((await server.fetch('/health')).status, 200);
    const late = await post(server, '/v1/chat/completions', { messages: user('late') });
    retryAfter(late);
    assert.equal(late.headers.get('connection'), 'close');
    assert.equal((await refused(late, 503)).type, 'unavailable_error');
    await whole;
    assert.equal(stream.finish, 'length');
    assert.deepEqual(await drain('GET'), { state: 'drained', requests: 0 });
    assert.deepEqual(await drain('DELETE'), { state: 'open', requests: 0 });
    const again = await server.fetch('/ready');
    assert.deepEqual([again.status, again.headers.get('connection')], [200, null]);
    assert.equal((await answer(server, 'say: back again')).text, 'back again');
  });

  it('gives way to a shutdown, of which the admin listener tells to the end', async (t) => {
    const server = await start(t, flags);
    const admin = printed(server, 'operators');
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    stream.readOn();
    await askAdmin(admin, 'POST', '/drain');
    server.signal('SIGTERM');
    for (;;) {
      const { text } = await askAdmin(admin, 'GET', '/drain');
      if (JSON.parse(text).state === 'leaving') break;
    }
    const closed = net.connect(server.port, '127.0.0.1');
    await once(closed, 'error'); // clients find the door closed
    assert.deepEqual(JSON.parse((await askAdmin(admin, 'GET', '/drain')).text), { state: 'leaving', requests: 1 });
    assert.equal((await askAdmin(admin, 'GET', '/ready')).status, 503);
    assert.equal((await askAdmin(admin, 'DELETE', '/drain')).status, 409);
    stream.leave();
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  it('ends with feeds that operators still read', async (t) => {
    const server = await start(t, flags);
    const feed = http.get(`${printed(server, 'operators')}/debug/steps`, { agent: false });
    const [response] = await once(feed, 'response');
    response.resume().on('error', () => {});
    server.signal('SIGTERM');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

describe('flags of the admin listener and of agent checks', () => {
  it('open nothing unless they are given', async (t) => {
    const server = await start(t, sim);
    assert.equal(server.stdout.filter((line) => line.startsWith('listening on')).length, 1);
  });

  it('are refused where they make no sense, or give too much', async () => {
    const refusedStart = async (flag, value) => {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', flag, value]);
      assert.equal(code, 2, stderr);
      return stderr;
    };
    assert.match(await refusedStart('--admin-listen', '0.0.0.0:0'), /--admin-listen 0\.0\.0\.0:0 .*--admin-public/);
    for (const flag of ['--admin-listen', '--agent-check']) {
      for (const bad of ['9090', 'localhost', 'node.example:80', '127.0.0.1:99999']) {
        assert.match(await refusedStart(flag, bad), new RegExp(`${flag} ${bad} must be an address and a port`));
      }
    }
  });

  it('name the address that is taken', async (t) => {
    const server = await start(t, [...sim, '--admin-listen', '127.0.0.1:0']);
    const { port } = new URL(printed(server, 'operators'));
    const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--admin-listen', `127.0.0.1:${port}`]);
    assert.equal(code, 2);
    assert.match(stderr, /--admin-listen/);
  });

  it('are not given twice', async () => {
    const own = path.join(folder, 'twice.sock');
    const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--unix-socket', own, '--admin-listen', own]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(own));
  });

  it('are given by variables as well', async (t) => {
    const server = await start(t, [...sim, '--port', '0'], { CHASQUI_ADMIN_LISTEN: '127.0.0.1:0', CHASQUI_AGENT_CHECK: '127.0.0.1:0' });
    assert.equal((await askAdmin(printed(server, 'operators'), 'GET', '/ready')).status, 200);
    assert.match(printed(server, 'agent checks'), /^127\.0\.0\.1:\d+$/);
  });

  it('are kept by a supervised server after a restart', async (t) => {
    const local = path.join(folder, 'supervised.sock');
    const server = await start(t, [...sim, '--supervise', '--admin-listen', local]);
    const before = (await askAdmin(`unix:${local}`, 'GET', '/ready')).status;
    assert.equal(before, 200);
    const child = Number(execFileSync('pgrep', ['-P', String(server.pid)], { encoding: 'utf8' }));
    process.kill(child, 'SIGKILL');
    await server.says(/the server has died; it is started again/, 'the supervisor says that the server has ended');
    for (let status = 0; status !== 200;) {
      status = (await askAdmin(`unix:${local}`, 'GET', '/ready').catch(() => ({ status: 0 }))).status;
    }
  });
});

describe('agent checks', async () => {
  const server = await start(test, [...sim, '-np', '2', '-c', '200000', '--stuck-after', '0.1', '--agent-check', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']);
  const admin = printed(server, 'operators');
  const port = Number(printed(server, 'agent checks').split(':')[1]);

  function check(says = '') {
    return new Promise((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1');
      let text = '';
      socket.setTimeout(hangAfter, () => socket.destroy(new Error('no line')));
      socket.setEncoding('utf8').on('data', (part) => (text += part));
      socket.on('error', reject).on('end', () => resolve(text));
      if (says) socket.write(says);
    });
  }

  it('say that the node is up, and ready again where it was not', async () => {
    assert.equal(await check(), 'up ready\n');
    assert.equal(await check('what HAProxy sends with agent-send\n'), 'up ready\n');
  });

  it('say drain while it is drained', async () => {
    await askAdmin(admin, 'POST', '/drain');
    assert.equal(await check(), 'drain\n');
    await askAdmin(admin, 'DELETE', '/drain');
    assert.equal(await check(), 'up ready\n');
  });

  it('are not held up by connections that stay open', async () => {
    const idle = await Promise.all(Array.from({ length: 200 }, async () => {
      const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {});
      await once(socket, 'data');
      return socket;
    }));
    assert.equal(await check(), 'up ready\n');
    for (const socket of idle) socket.destroy();
  });

  it('say maint while a worker hangs, and up when it moves again', async () => {
    const hang = post(server, '/v1/chat/completions', { messages: user('hang: 2') });
    while (await check() !== 'maint\n');
    assert.equal((await server.fetch('/ready')).status, 503);
    assert.equal((await hang).status, 500);
    while (await check() !== 'up ready\n');
  });

  it('say drain during a shutdown', async (t) => {
    const leaving = await start(t, [...sim, '--drain-delay', '3600', '--agent-check', '127.0.0.1:0']);
    const where = Number(printed(leaving, 'agent checks').split(':')[1]);
    leaving.signal('SIGTERM');
    for (let line = ''; line !== 'drain\n';) {
      const socket = net.connect(where, '127.0.0.1');
      [line] = await once(socket.setEncoding('utf8'), 'data');
      assert.ok(['drain\n', 'up ready\n'].includes(line), line);
      socket.destroy();
    }
    leaving.signal('SIGTERM');
    assert.deepEqual(await leaving.ended, { code: 0, signal: null });
  });
});

describe('headers of gateways', async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '500000']);
  const say = (headers, fields = {}) => post(server, '/v1/chat/completions', { messages: user('say: x'), ...fields }, { headers });

  it('x-request-id and x-session-id come back', async () => {
    const named = await say({ 'x-request-id': 'r-1', 'x-session-id': 's-1' });
    assert.deepEqual([named.headers.get('x-request-id'), named.headers.get('x-session-id')], ['r-1', 's-1']);
    const unnamed = await say({});
    assert.match(unnamed.headers.get('x-request-id'), /^req_/);
    assert.equal(unnamed.headers.get('x-session-id'), null);
    const failed = await post(server, '/v1/chat/completions', '{', { headers: { 'x-session-id': 's-2' } });
    assert.deepEqual([failed.status, failed.headers.get('x-session-id')], [400, 's-2'], 'on errors, too');
    assert.equal((await say({ 'x-session-id': 'x'.repeat(129) })).headers.get('x-session-id'), null);
  });

  it('that are wrong are named in a 400, in each dialect', async () => {
    const bodies = {
      '/v1/chat/completions': { messages: user('x') },
      '/v1/completions': { prompt: 'x' },
      '/completion': { prompt: 'x' },
      '/v1/responses': { input: 'x' },
    };
    for (const [target, body] of Object.entries(bodies)) {
      for (const [name, value] of [['x-llm-d-slo-ttft-ms', 'soon'], ['x-llm-d-slo-tpot-ms', '0'], ['x-slo-ttft-ms', '-5'],
        ['x-llm-d-inference-fairness-id', 'x'.repeat(257)]]) {
        const error = await refused(await post(server, target, body, { headers: { [name]: value } }), 400);
        assert.equal(error.param, name, target);
        assert.match(error.message, new RegExp(`^${name} must be`));
      }
    }
    const messages = await post(server, '/v1/messages', { max_tokens: 1, messages: user('x') }, { headers: { 'x-llm-d-slo-ttft-ms': 'x' } });
    assert.equal(messages.status, 400);
    assert.match((await messages.json()).error.message, /x-llm-d-slo-ttft-ms/);
  });

  // In which order requests end that wait for one slot.
  async function order(requests) {
    const running = await streamChat(server, 'go on', { ...endless, priority: 'interactive' });
    await running.nextText();
    running.readOn();
    const ended = [];
    const jobs = [];
    for (const [i, [name, headers]] of requests.entries()) {
      jobs.push(say(headers, { messages: user(`say: ${name}`), priority: 'standard' }).then(async (response) => {
        assert.equal(response.status, 200);
        const { timings } = await response.json();
        ended.push([name, timings.queue_ms]);
      }));
      await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === i + 1);
    }
    running.leave();
    await Promise.all(jobs);
    await server.idle();
    // Who waited longer than another one that came later was passed by it: the order of starts is that of ends here.
    return ended.map(([name]) => name);
  }

  it('the fairness id shares out what a tenant gets', async () => {
    const fair = (id) => ({ 'x-llm-d-inference-fairness-id': id });
    const seen = await order([...Array.from({ length: 6 }, (_, i) => [`a${i}`, fair('team-a')]), ['b', fair('team-b')]]);
    assert.ok(seen.indexOf('b') <= 1, `${seen}`);
    const same = await order([...Array.from({ length: 6 }, (_, i) => [`a${i}`, fair('team-a')]), ['b', fair('team-a')]]);
    assert.equal(same.indexOf('b'), 6, `${same}: who came last is the last of its group`);
  });

  it('the target of the first token orders requests of a class', async () => {
    const soon = { 'x-llm-d-slo-ttft-ms': '1' };
    const seen = await order([['a', {}], ['b', {}], ['c', {}], ['hasty', soon]]);
    assert.equal(seen[0], 'hasty', `${seen}`);
    const slow = await order([['a', {}], ['late', { 'x-llm-d-slo-ttft-ms': '3600000' }], ['b', {}], ['c', {}]]);
    assert.equal(slow.at(-1), 'late', `${slow}`);
  });

  it('a target that is missed fails nothing', async () => {
    const running = await streamChat(server, 'go on', { ...endless, priority: 'interactive' });
    await running.nextText();
    running.readOn();
    const late = say({ 'x-llm-d-slo-ttft-ms': '1', 'x-llm-d-slo-tpot-ms': '1' });
    const waiting = await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
    assert.ok(waiting);
    running.leave();
    assert.equal((await late).status, 200);
  });
});

describe('the load report of ORCA', async () => {
  const server = await start(test, [...sim, '-np', '2', '-c', '200000']);
  const header = async (format) => {
    const response = await server.fetch('/health', { headers: format ? { 'endpoint-load-metrics-format': format } : {} });
    return response.headers.get('endpoint-load-metrics');
  };

  it('comes when it is asked for, in the form that was', async () => {
    assert.equal(await header('TEXT'),
      'TEXT named_metrics.kv_cache_usage_perc=0, named_metrics.num_requests_waiting=0, named_metrics.num_requests_running=0');
    assert.deepEqual(JSON.parse((await header('json')).replace(/^JSON /, '')),
      { named_metrics: { kv_cache_usage_perc: 0, num_requests_waiting: 0, num_requests_running: 0 } });
    assert.equal(await header(), null);
    assert.equal(await header('BIN'), null, 'a form that it does not have');
  });

  it('is that of the metrics while the node works', async () => {
    const streams = [];
    for (let i = 0; i < 2; ++i) {
      streams.push(await streamChat(server, 'go on', endless));
      await streams[i].nextText();
      streams[i].readOn();
    }
    const waiting = post(server, '/v1/chat/completions', { messages: user('say: done') }, { headers: { 'endpoint-load-metrics-format': 'JSON' } });
    await server.until((metrics) => metrics.sum('vllm:num_requests_waiting') === 1);
    const { named_metrics: busy } = JSON.parse((await header('JSON')).slice(5));
    assert.deepEqual([busy.num_requests_running, busy.num_requests_waiting], [2, 1]);
    assert.ok(busy.kv_cache_usage_perc > 0 && busy.kv_cache_usage_perc < 1, `${busy.kv_cache_usage_perc}`);
    const metrics = await server.metrics();
    assert.ok(Math.abs(metrics.sum('vllm:kv_cache_usage_perc') - busy.kv_cache_usage_perc) < 0.1);
    for (const stream of streams) stream.leave();
    assert.match((await waiting).headers.get('endpoint-load-metrics'), /^JSON \{"named_metrics":\{/);
  });
});

describe('the gauges that endpoint pickers read', async () => {
  const server = await start(test, [...sim, '--sim-step', '2', '-np', '2', '-c', '6400', '--workers', '2']);

  it('count cells in blocks of 64', async () => {
    const metrics = await server.metrics();
    const [{ labels }] = metrics.all('vllm:cache_config_info');
    assert.equal(labels.block_size, '64');
    assert.equal(Number(labels.num_gpu_blocks), metrics.sum('chasqui_kv_cells') / 64);
  });

  it('rise with requests and fall to zero', async () => {
    const streams = await Promise.all(['a', 'b'].map((name) => streamChat(server, `${name} ${'word '.repeat(50)}`, { ...endless, max_tokens: 3000 })));
    for (const stream of streams) {
      await stream.nextText();
      stream.readOn();
    }
    const extra = post(server, '/v1/chat/completions', { messages: user('say: x') });
    const busy = await server.until((metrics) => metrics.sum('vllm:num_requests_waiting') === 1);
    assert.equal(busy.sum('vllm:num_requests_running'), 2);
    const used = busy.sum('vllm:kv_cache_usage_perc');
    assert.ok(used >= 100 / 6400 && used <= 1, `${used}`);
    for (const stream of streams) stream.leave();
    assert.equal((await extra).status, 200);
    const idle = await server.idle();
    for (const name of ['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc']) {
      assert.equal(idle.sum(`vllm:${name}`), 0, name);
    }
  });
});
