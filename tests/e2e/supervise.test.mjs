// --supervise, and sockets that are handed over: no client is refused when the server ends, and the next one goes on.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, streamChat, user } from './client.mjs';
import { exchange, parse, request } from './raw.mjs';
import { binary, hangAfter, run, sim, start, textLog } from './server.mjs';

const { describe, it } = test;

// On a connection of its own, so that none is used again that a dead server has left.
async function say(server, what) {
  const body = JSON.stringify({ messages: user(`say: ${what}`) });
  const bytes = request('POST', '/v1/chat/completions', { 'Content-Length': Buffer.byteLength(body) }, body);
  const response = parse(await exchange(server, bytes));
  assert.equal(response.status, 200, response.body);
  return JSON.parse(response.body).choices[0].message.content;
}

const childrenOf = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
const childOf = (pid) => childrenOf(pid)[0];

// The server that is there when it is not `old` any more.
async function nextChild(server, old) {
  for (;;) {
    const child = childOf(server.pid);
    if (child && child !== old) return child;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// Eight clients that ask again and again until `change` is through; returns how many answers there were.
async function underLoad(server, change) {
  let done = false;
  let answers = 0;
  const client = async (i) => {
    for (let n = 0; !done || n < 3; ++n) {
      assert.equal(await say(server, `${i} and ${n}`), `${i} and ${n}`);
      ++answers;
    }
  };
  const clients = Promise.all(Array.from({ length: 8 }, (_, i) => client(i)));
  await change();
  done = true;
  await clients;
  return answers;
}

// In place of a shell that has done something before.
async function after(t, commands, flags = []) {
  const args = ['-c', `${commands}; exec "$0" "$@"`, binary, 'serve', ...sim, '--supervise', '--port', '0', ...flags];
  const child = spawn('sh', args, { env: { ...process.env, ...textLog }, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  const server = { pid: child.pid, stdin: child.stdin, ended, says: (pattern) => until(child.stderr, pattern) };
  server.port = Number((await until(child.stdout, /listening on \S+:(\d+)\n[^]*serving /))[1]);
  server.fetch = (path, options) => fetch(`http://127.0.0.1:${server.port}${path}`, options);
  return server;
}

// Node gives its children the signals as they are by default; the shell passes on that some are ignored.
const ignoring = (t, signals, flags) => after(t, `trap "" ${signals}`, flags);
const underNohup = (t, flags) => ignoring(t, 'HUP', flags);

// Until what a stream says matches.
async function until(stream, pattern) {
  let text = '';
  for await (const piece of on(stream.setEncoding('utf8'), 'data', { close: ['end'], signal: AbortSignal.timeout(hangAfter) })) {
    const match = pattern.exec((text += piece));
    if (match) return match;
  }
  return assert.fail(`${pattern} never came: ${text}`);
}

describe('a supervised server', { skip: process.platform !== 'linux' && '/proc is needed' }, async () => {
  for (const signal of ['SIGKILL', 'SIGABRT']) {
    it(`comes back after ${signal} with its sessions, and no client is refused meanwhile`, async (t) => {
      const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
      t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
      const server = await start(t, [...sim, '--supervise', '--session-dir', dir]);
      const session = await ask(server, '/v1/sessions', { text: 'Once upon a time' });
      for (let round = 0; round < 3; ++round) {
        const child = childOf(server.pid);
        process.kill(child, signal);
        const all = await Promise.all(Array.from({ length: 30 }, (_, i) => say(server, `after ${i}`)));
        assert.deepEqual(all, Array.from({ length: 30 }, (_, i) => `after ${i}`));
        assert.notEqual(childOf(server.pid), child);
      }
      const again = parse(await exchange(server, request('GET', `/v1/sessions/${session.id}`)));
      assert.equal(JSON.parse(again.body).tokens, session.tokens);
      const pauses = [...server.stderr.matchAll(/the server has died.*in_s=([\d.]+)/g)].map((match) => Number(match[1]));
      assert.deepEqual(pauses, [0.1, 0.2, 0.4]);
      await server.says(signal === 'SIGKILL' ? /signal 9/ : /signal 6/);
    });
  }

  it('comes back while the log is not read', async (t) => {
    const server = await start(t, [...sim, '--supervise', '--alias', 'name'.repeat(500)]);
    server.child.stderr.pause();
    const some = () => Promise.all(Array.from({ length: 200 }, (_, i) => say(server, `${i}`)));
    while ((await server.metrics()).value('chasqui_log_lines_dropped_total') === 0) await some();
    for (let round = 0; round < 2; ++round) {
      const child = childOf(server.pid);
      process.kill(child, 'SIGKILL');
      assert.equal(await say(server, 'here again'), 'here again');
      assert.notEqual(childOf(server.pid), child);
    }
    server.child.stderr.resume();
  });

  it('is restarted without loss when it alone is told to stop', async (t) => {
    const server = await start(t, [...sim, '--supervise']);
    const answers = await underLoad(server, async () => {
      const child = childOf(server.pid);
      process.kill(child, 'SIGTERM');
      await nextChild(server, child);
      await say(server, 'there');
    });
    assert.ok(answers >= 24);
    await server.says(/the server has died.*exit code 0/);
  });

  it('is replaced when its worker hangs', async (t) => {
    const server = await start(t, [...sim, '--supervise', '--stuck-after', '0.5']);
    const child = childOf(server.pid);
    const body = JSON.stringify({ messages: user('hang: 600') });
    const lost = parse(await exchange(server,
      request('POST', '/v1/chat/completions', { 'Content-Length': body.length }, body)));
    assert.equal(lost.status, 500);
    assert.match(lost.body, /hangs/);
    assert.notEqual(await nextChild(server, child), child);
    assert.equal(await say(server, 'fresh'), 'fresh');
    await server.says(/the server has died.*exit code 70/);
  });

  it('lets what runs finish when it is told to stop while it leaves because a worker hangs', async (t) => {
    const server = await start(t, [...sim, '--supervise', '--workers', '2', '-np', '2', '-c', '4096', '--sim-step', '20', '--stuck-after', '1']);
    const running = await streamChat(server, 'go on', { max_tokens: 200, ignore_eos: true });
    await running.nextText();
    const body = JSON.stringify({ messages: user('hang: 600') });
    await exchange(server, request('POST', '/v1/chat/completions', { 'Content-Length': body.length }, body));
    await server.says(/leaving/);
    server.signal('SIGTERM');
    await running.collect();
    assert.equal(running.finish, 'length');
    assert.deepEqual(await server.ended, { code: 70, signal: null });
  });

  it('drains at SIGHUP where there is nothing to read again', async (t) => {
    const server = await start(t, [...sim, '--supervise']);
    const running = await streamChat(server, 'hang: 1', { max_tokens: 20, ignore_eos: true });
    process.kill(childOf(server.pid), 'SIGHUP'); // as a terminal that goes tells all its processes
    process.kill(server.pid, 'SIGHUP');
    assert.equal((await running.collect()).finish, 'length');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  it('lets what runs finish where the log is turned during the drain', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    const log = path.join(dir, 'log');
    const says = async (pattern) => {
      while (!pattern.test(await fs.readFile(log, 'utf8').catch(() => ''))) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const server = await start(t, [...sim, '--supervise', '--log-file', log]);
    const running = await streamChat(server, 'hang: 6', { max_tokens: 20, ignore_eos: true });
    server.signal('SIGTERM');
    await says(/leaving/);
    await fs.rename(log, `${log}.1`);
    server.signal('SIGHUP');
    await says(/log file opened again/);
    assert.equal((await running.collect()).finish, 'length');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.match(await fs.readFile(log, 'utf8'), /log file opened again[^]*log file opened again/, 'by both processes');
  });

  it('lets what runs finish when both processes get the SIGTERM, as systemd and killall send it', async (t) => {
    const server = await start(t, [...sim, '--supervise']);
    const running = await streamChat(server, 'hang: 1', { max_tokens: 20, ignore_eos: true });
    process.kill(childOf(server.pid), 'SIGTERM');
    process.kill(server.pid, 'SIGTERM');
    assert.equal((await running.collect()).finish, 'length');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  it('outlives the end of a login under nohup', async (t) => {
    const server = await underNohup(t);
    const child = childOf(server.pid);
    process.kill(server.pid, 'SIGHUP');
    process.kill(child, 'SIGKILL'); // a supervisor that is about to end would start no other
    assert.equal(await say(server, 'still here'), 'still here');
    assert.notEqual(childOf(server.pid), child);
    process.kill(server.pid, 'SIGTERM');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('comes back where its parent takes no notice of children that end', async (t) => {
    const server = await ignoring(t, 'CHLD');
    const child = childOf(server.pid);
    process.kill(child, 'SIGKILL');
    assert.equal(await say(server, 'still here'), 'still here');
    assert.notEqual(childOf(server.pid), child);
    process.kill(server.pid, 'SIGTERM');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('leaves no zombie of a process that it has not started', async (t) => {
    const server = await after(t, 'exec 3<&0; cat <&3 >&2 & exec 3<&-');
    assert.equal(childrenOf(server.pid).length, 2);
    server.stdin.end(); // and so does cat
    const end = Date.now() + hangAfter;
    while (childrenOf(server.pid).length > 1) {
      assert.ok(Date.now() < end, 'it is still there');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    process.kill(server.pid, 'SIGTERM');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('reads its keys again at SIGHUP under nohup, too', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    const keys = path.join(dir, 'keys');
    await fs.writeFile(keys, 'k-one\n');
    const server = await underNohup(t, ['--api-key-file', keys]);
    process.kill(server.pid, 'SIGHUP');
    await server.says(/keys reloaded/);
    process.kill(server.pid, 'SIGTERM');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('finishes what runs when Ctrl-C is typed, which all processes of the terminal get', async (t) => {
    const server = await ignoring(t, 'QUIT', ['-np', '2', '-c', '40000']);
    const stream = await streamChat(server, 'the stream', { ignore_eos: true, max_tokens: 4000 });
    await stream.nextText();
    process.kill(-server.pid, 'SIGINT');
    await stream.collect();
    assert.equal(stream.finish, 'length');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('that takes no notice of SIGTERM is killed', async (t) => {
    const server = await start(t, [...sim, '--supervise', '--drain-time', '0.05']);
    process.kill(childOf(server.pid), 'SIGSTOP');
    server.signal('SIGTERM');
    assert.deepEqual(await server.ended, { code: 128 + 9, signal: null });
    assert.match(server.stderr, /the server does not end; it is killed/);
  });

  it('that cannot start is not tried again and again', async (t) => {
    const server = await start(t, sim);
    const taken = await run(['serve', ...sim, '--supervise', '--port', String(server.port)]);
    assert.deepEqual([taken.code, /Cannot listen/.test(taken.stderr)], [2, true]);
    const missing = await run(['serve', '--supervise', '--port', '0', '-m', '/nowhere.gguf']);
    assert.equal(missing.code, 2);
    const keyless = await run(['serve', ...sim, '--supervise', '--port', '0', '--host', '0.0.0.0']);
    assert.deepEqual([keyless.code, /--api-key/.test(keyless.stderr)], [2, true]);
  });

  it('keeps its Unix sockets, too', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    const names = ['http.sock', 'frames.sock'].map((name) => path.join(dir, name));
    const server = await start(t, [...sim, '--supervise', '--unix-socket', names[0], '--socket', names[1]]);
    const before = await Promise.all(names.map((name) => fs.stat(name)));
    process.kill(childOf(server.pid), 'SIGKILL');
    assert.equal(await say(server, 'back'), 'back');
    const after = await Promise.all(names.map((name) => fs.stat(name)));
    assert.deepEqual(after.map((file) => file.ino), before.map((file) => file.ino));
    await server.stop();
    for (const name of names) await assert.rejects(fs.stat(name), { code: 'ENOENT' });
  });
});

// tests/e2e/activate.py: opens a socket and hands it to servers, as systemd does.
class Activator {
  constructor(t, args) {
    const script = path.join(path.dirname(fileURLToPath(import.meta.url)), 'activate.py');
    this.child = spawn('python3', [script, binary, 'serve', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => this.child.kill('SIGKILL'));
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }
  async says(pattern) {
    for (;;) {
      const { value, done } = await this.lines.next();
      assert.ok(!done, `activate.py ended before it said ${pattern}`);
      const match = pattern.exec(value);
      if (match) return match[1];
    }
  }
  async port() {
    return Number(await this.says(/^port (\d+)$/));
  }
  async start() {
    this.child.stdin.write('start\n');
    this.pid = Number(await this.says(/^pid (\d+)$/));
    return this.says(/^listening on (.*)$/);
  }
  async stop() {
    process.kill(this.pid, 'SIGTERM');
    this.child.stdin.write('wait\n');
    return Number(await this.says(/^code (-?\d+)$/));
  }
}

describe('a socket that is handed over', { skip: process.platform !== 'linux' && 'as systemd does it' }, async () => {
  it('is served, and survives a restart under load without a lost request', async (t) => {
    const activator = new Activator(t, sim);
    const server = { port: await activator.port() };
    assert.equal(await activator.start(), `http://127.0.0.1:${server.port}`);
    const answers = await underLoad(server, async () => {
      for (let round = 0; round < 2; ++round) {
        assert.equal(await activator.stop(), 0);
        await activator.start();
      }
    });
    assert.ok(answers >= 24);
    assert.equal(await activator.stop(), 0);
  });
});
