// SIGTERM: what runs may finish, nothing new begins, and the exit code is 0.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { constants, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, endless, post, refused, streamChat, user } from './client.mjs';
import { parseMetrics } from './metrics.mjs';
import { connect, parse, request } from './raw.mjs';
import { askAdmin, binary, demo, hangAfter, sim, start } from './server.mjs';

const { describe, it } = test;

// Resolves when connections are not accepted any more.
async function doorClosed(server) {
  for (;;) {
    const socket = net.connect(server.port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      socket.destroy();
    } catch (error) {
      if (error.code === 'ECONNREFUSED') return;
      assert.equal(error.code, 'ECONNRESET'); // it waited to be accepted when the door closed
    }
  }
}

const wellEnded = { code: 0, signal: null };

// The process that another one has started.
const childOf = (pid) => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);

const namespaces = spawnSync('unshare', ['--fork', '--pid', 'true']).status === 0;

// Waits until a process reads from it.
async function openedPipe(name) {
  for (;;) {
    try {
      return await fs.open(name, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      assert.equal(error.code, 'ENXIO');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

describe('the first process of a container', { skip: !namespaces && 'this user may make no namespace' }, () => {
  for (const signal of ['SIGTERM', 'SIGINT']) {
    it(`ends at ${signal} before it serves`, async (t) => {
      const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
      t.after(() => fs.rm(dir, { recursive: true, force: true }));
      const settings = path.join(dir, 'settings.toml');
      spawnSync('mkfifo', [settings]);
      const outside = spawn('unshare', ['--fork', '--pid', '--kill-child', binary, 'serve', '--config', settings], { stdio: 'inherit' });
      t.after(() => outside.kill('SIGKILL'));
      const ended = once(outside, 'close');
      const pipe = await openedPipe(settings);
      process.kill(childOf(outside.pid), signal);
      assert.deepEqual(await ended, [128 + os.constants.signals[signal], null]);
      await pipe.close();
    });
  }
});

const mounts = spawnSync('unshare', ['--mount', 'true']).status === 0;

// Whatever it is asked; `asked` resolves with the first question.
async function silentNameServer(t) {
  const socket = dgram.createSocket('udp4');
  t.after(() => socket.close());
  const asked = once(socket, 'message');
  socket.bind(53, '127.0.0.77');
  await once(socket, 'listening');
  return { address: '127.0.0.77', asked };
}

describe('chasqui pull', { skip: !mounts && 'this user may make no namespace' }, () => {
  it('ends at SIGTERM while a name is looked up', async (t) => {
    const { address, asked } = await silentNameServer(t);
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true }));
    const settings = path.join(dir, 'resolv.conf');
    await fs.writeFile(settings, `nameserver ${address}\noptions timeout:30 attempts:5\n`); // longer than a test may take
    const command = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
    const env = { PATH: process.env.PATH, HOME: dir, HF_ENDPOINT: 'http://hub.example.org' };
    const child = spawn('unshare', ['--mount', 'sh', '-c', command, settings, binary, 'pull', 'a/b'], { env, stdio: 'inherit', timeout: hangAfter, killSignal: 'SIGKILL' });
    const ended = once(child, 'exit');
    await Promise.race([asked, ended]);
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [128 + os.constants.signals.SIGTERM, null]);
  });
});

describe('a server that is told to stop', async () => {
  it('ends at once when it is idle, whatever connections are open', async (t) => {
    const server = await start(t, demo);
    await answer(server, 'Hello', { max_tokens: 2 }); // leaves an idle connection
    const silent = await connect(server);
    silent.resume();
    server.signal('SIGTERM');
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('does so where its standard files are closed', async (t) => {
    // It cannot say which port it has been given.
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true }));
    const socket = path.join(dir, 'chasqui.sock');
    const args = ['-c', 'exec "$0" "$@" <&- >&- 2>&-', binary, 'serve', ...sim, '--host', socket];
    const child = spawn('sh', args, { stdio: 'ignore' });
    t.after(() => child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const status = () => askAdmin(`unix:${socket}`, 'GET', '/health').then((response) => response.status, () => 0);
    while (await status() !== 200) await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });

  for (const flags of [[], ['--supervise']]) {
    it(`does so where its log goes to a terminal that is not read, ${flags[0] ?? 'alone'}`, async (t) => {
      const script = 'import pty, subprocess, sys\n_, screen = pty.openpty()\nsys.exit(subprocess.call(sys.argv[1:], stderr=screen))';
      const args = ['-c', script, binary, 'serve', ...sim, ...flags, '--port', '0', '--alias', 'name'.repeat(500)];
      const child = spawn('python3', args, { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(child, 'exit', { signal: AbortSignal.timeout(hangAfter) });
      let said = '';
      for await (const part of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
        if (/^serving /m.test((said += part))) break;
      }
      child.stdout.resume();
      const pid = childOf(child.pid);
      t.after(() => child.exitCode ?? process.kill(pid, 'SIGKILL'));
      const server = { fetch: (target, options) => fetch(/^listening on (\S+)$/m.exec(said)[1] + target, options) };
      const lost = async () => parseMetrics(await (await server.fetch('/metrics')).text()).value('chasqui_log_lines_dropped_total') > 0;
      while (!await lost()) await Promise.all(Array.from({ length: 100 }, () => answer(server, 'say: x')));
      process.kill(pid, 'SIGTERM');
      assert.deepEqual(await ended, [0, null]);
    });
  }

  it('does so for SIGINT, too', async (t) => {
    const server = await start(t, sim);
    server.signal('SIGINT');
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('lets streams, whole answers and the queue finish, and refuses new connections', async (t) => {
    const server = await start(t, [...sim, '--sim-step', '1', '-np', '2', '-c', '40000']);
    const fields = { ignore_eos: true, max_tokens: 4000 };
    const stream = await streamChat(server, 'the stream', fields);
    await stream.nextText();
    const read = stream.collect(); // from now on, so that it is not cut as unread
    read.catch(() => {});
    const whole = answer(server, 'the whole', fields);
    await server.until((metrics) => metrics.value('chasqui_requests_running') === 2);
    const queued = answer(server, 'say: it was worth the wait');
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
    server.signal('SIGTERM');
    await doorClosed(server);
    await read;
    assert.equal(stream.finish, 'length');
    assert.equal((await whole).usage.completion_tokens, 4000);
    assert.equal((await queued).text, 'it was worth the wait');
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('lets all of fifty streams finish', async (t) => {
    const server = await start(t, [...sim, '-np', '50', '-c', '50000']);
    const all = await Promise.all(Array.from({ length: 50 }, (_, i) =>
      streamChat(server, `stream ${i}`, { ignore_eos: true, max_tokens: 300 })));
    await Promise.all(all.map((stream) => stream.nextText()));
    server.signal('SIGTERM');
    await Promise.all(all.map((stream) => stream.collect()));
    assert.deepEqual(all.map((stream) => stream.finish), Array(50).fill('length'));
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('refuses a request that is still being sent with 503', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '200000']);
    const stream = await streamChat(server, 'the stream', endless);
    await stream.nextText();
    const late = await connect(server);
    const body = JSON.stringify({ messages: user('late') });
    const bytes = request('POST', '/v1/chat/completions', { 'Content-Length': body.length }, body);
    late.write(bytes.slice(0, -5));
    await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') === 3, 'the late one has begun');
    server.signal('SIGTERM');
    await doorClosed(server);
    const parts = [];
    late.on('data', (part) => parts.push(part));
    late.write(bytes.slice(-5));
    await once(late, 'end');
    const response = parse(Buffer.concat(parts).toString());
    assert.equal(response.status, 503);
    assert.match(JSON.parse(response.body).error.message, /shutting down/);
    stream.leave();
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('cuts what is not done in the drain time', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '2000000', '--drain-time', '0.05']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    server.signal('SIGTERM');
    await assert.rejects(stream.collect());
    assert.deepEqual(await server.ended, wellEnded);
    assert.match(server.stderr, /did not finish in time/);
  });

  it('with no drain time cuts everything', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '2000000', '--drain-time', '0']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    const whole = assert.rejects(post(server, '/v1/chat/completions', { messages: user('x'), ...endless }));
    await server.until((metrics) => metrics.value('chasqui_requests_running') === 2);
    server.signal('SIGTERM');
    await assert.rejects(stream.collect());
    await whole;
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('twice ends without waiting', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '2000000']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    server.signal('SIGTERM');
    await doorClosed(server);
    server.signal('SIGTERM');
    await assert.rejects(stream.collect());
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('ends although a worker hangs', async (t) => {
    const server = await start(t, [...sim, '--stuck-after', '0.1']);
    await refused(await post(server, '/v1/chat/completions', { messages: user('hang: 3600') }), 500);
    server.signal('SIGTERM');
    assert.deepEqual(await server.ended, wellEnded);
    assert.match(server.stderr, /the process ends without them/);
  });

  it('first tells load balancers, for as long as --drain-delay says', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '2000000', '--drain-delay', '3600']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    assert.equal((await server.fetch('/ready')).status, 200);
    server.signal('SIGTERM');
    while ((await server.fetch('/ready')).status !== 503);
    const health = await server.fetch('/health');
    assert.deepEqual([health.status, health.headers.get('connection')], [200, 'close']);
    const late = await post(server, '/v1/chat/completions', { messages: user('late') });
    assert.equal(late.headers.get('connection'), 'close');
    assert.match((await refused(late, 503)).message, /shutting down/);
    await stream.nextText(); // what runs goes on
    server.signal('SIGTERM');
    await assert.rejects(stream.collect());
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('closes its door when that delay is over', async (t) => {
    const server = await start(t, [...sim, '--drain-delay', '0.05']);
    server.signal('SIGTERM');
    await doorClosed(server);
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('while a large body is turned into tokens answers it first', async (t) => {
    const server = await start(t, sim);
    const body = JSON.stringify({ content: 'word '.repeat(200_000) });
    const large = post(server, '/tokenize', body);
    await server.until((metrics) => metrics.value('chasqui_http_body_bytes') >= body.length, 'all of it has come');
    server.signal('SIGTERM');
    const response = await large;
    assert.equal(response.status, 200);
    assert.ok((await response.json()).tokens.length >= 200_000);
    assert.deepEqual(await server.ended, wellEnded);
  });

  it('in the middle of a long prompt ends as well', async (t) => {
    const server = await start(t, [...demo, '--drain-time', '0']);
    const prompt = Array(1900).fill(300);
    const long = assert.rejects(post(server, '/v1/completions', { prompt, ...endless }));
    await server.until((metrics) => metrics.value('chasqui_requests_running') === 1);
    server.signal('SIGTERM');
    await long;
    assert.deepEqual(await server.ended, wellEnded);
  });
});
