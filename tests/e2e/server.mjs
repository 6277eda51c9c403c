// Starts the real binary and talks to it. A server that was started here must end well: stop() fails when it crashed,
// lost an exception, or did not take back a slot or a cell.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { parseMetrics } from './metrics.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
export const binary = path.resolve(process.env.CHASQUI_BIN ?? path.join(here, '../../build/bin/chasqui'));

// A model that `make test-models` has made, whichever binary serves it.
export const testModel = (name) => path.join(here, `../../build/models/random-${name}.gguf`);

// Longer than anything here may take: a test that waits longer hangs. No test measures time with it.
export const hangAfter = 60_000;

// One compute thread: on a busy machine several would wait for each other's turn of the processor.
export const demo = ['-t', '1'];
export const sim = ['--engine', 'sim'];

const running = new Set();
process.on('exit', (code) => {
  for (const server of running) server.child.kill('SIGKILL');
  if (code !== 0) for (const server of Server.all) server.printErrors();
});

// Tests read the log from a pipe, where it would be JSON, and all fields of a request's line.
export const textLog = { CHASQUI_LOG_FORMAT: 'text', CHASQUI_REQUEST_LOG_FORM: 'long' };

function cleanEnvironment(extra) {
  const env = Object.entries(process.env).filter(([name]) => !/^(LLAMA|CHASQUI)_/.test(name));
  return { ...Object.fromEntries(env), ...extra };
}

// Runs the binary to its end, for starts that must fail.
export async function run(args, env = {}) {
  const all = cleanEnvironment(args[0] === 'serve' ? { ...textLog, ...env } : env);
  const child = spawn(binary, args, { env: all, timeout: hangAfter });
  const out = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out.stdout += text;
    if (out.stdout.includes('listening on')) child.kill(); // it was not to start
  });
  child.stderr.setEncoding('utf8').on('data', (text) => (out.stderr += text));
  const [code, signal] = await once(child, 'close');
  assert.equal(signal, null, `chasqui ${args.join(' ')} hung or crashed: ${out.stderr}`);
  return { code, ...out };
}

// `context` is a test, or node:test itself for a server of the whole file.
export async function start(context, flags = [], env = {}) {
  const server = new Server(flags, env);
  context.after(() => server.stop());
  await server.listening();
  return server;
}

export class Server {
  static all = [];

  constructor(flags, env) {
    const hasDoor = env.LLAMA_ARG_PORT || flags.some((flag) => flag === '--host' || flag === '--port');
    const door = hasDoor ? [] : ['--port', '0'];
    this.args = ['serve', ...door, ...flags];
    // Nothing of a test is to be left in the folders of the user.
    const alone = env.CHASQUI_TUNING_CACHE ? {} : { CHASQUI_NO_TUNING_CACHE: '1' };
    const all = cleanEnvironment({ ...textLog, ...alone, ...env });
    this.child = spawn(binary, this.args, { env: all, stdio: ['ignore', 'pipe', 'pipe'] });
    this.stderr = '';
    this.stdout = [];
    this.child.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text));
    this.ended = once(this.child, 'close').then(([code, signal]) => {
      this.exit = { code, signal };
      running.delete(this);
      return this.exit;
    });
    running.add(this);
    Server.all.push(this);
  }

  get pid() {
    return this.child.pid;
  }

  // The first address that it prints; every line that comes later is kept as well.
  async listening() {
    this.addresses = [];
    const lines = createInterface({ input: this.child.stdout });
    await new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        this.stdout.push(line);
        const address = /^listening on (\S+)$/.exec(line)?.[1];
        if (address) this.addresses.push(address);
        if (line.startsWith('serving ')) resolve();
      });
      this.ended.then((exit) => reject(new Error(`${this.name()} ended: ${JSON.stringify(exit)}\n${this.stderr}`)));
    });
    this.url = this.addresses.find((address) => address.startsWith('http'));
    if (this.url) this.port = Number(new URL(this.url).port);
  }

  // What its threads of such a name have computed, in milliseconds: exact for those that wait, and without those that
  // have ended.
  computed(name = '') {
    const tasks = `/proc/${this.pid}/task`;
    const text = (task, file) => readFileSync(`${tasks}/${task}/${file}`, 'utf8');
    const named = readdirSync(tasks).filter((task) => text(task, 'comm').startsWith(name));
    return named.reduce((sum, task) => sum + Number(text(task, 'schedstat').split(' ')[0]) / 1e6, 0);
  }

  name() {
    return `chasqui ${this.args.join(' ')}`;
  }

  printErrors() {
    const state = JSON.stringify(this.exit ?? 'running');
    console.error(`--- standard error of ${this.name()}, ${state}\n${this.stderr.slice(-1500)}`);
  }

  async fetch(target, options = {}) {
    try {
      return await fetch(this.url + target, { signal: AbortSignal.timeout(hangAfter), ...options });
    } catch (error) {
      const state = JSON.stringify(this.exit ?? 'running');
      if (error.name !== 'AbortError') error.message += ` (${target} of ${this.name()}, ${state})`;
      throw error;
    }
  }

  async metrics() {
    const response = await this.fetch('/metrics', { headers: this.key ? { authorization: `Bearer ${this.key}` } : {} });
    return parseMetrics(await response.text());
  }

  // Asks for the metrics until they are as wished. Each turn waits for the server's answer, never for a clock.
  async until(wish, what) {
    const end = Date.now() + hangAfter;
    for (;;) {
      const metrics = await this.metrics();
      if (await wish(metrics)) return metrics;
      assert.ok(Date.now() < end, `never happened: ${what ?? wish}; the metrics are\n${metrics.text}`);
    }
  }

  // Waits for a line on standard error. A thread of its own writes the log, so a line may come after what it is about.
  async says(pattern, what) {
    const late = AbortSignal.timeout(hangAfter);
    while (!pattern.test(this.stderr)) {
      await once(this.child.stderr, 'data', { signal: late }).catch(() => assert.match(this.stderr, pattern, what));
    }
  }

  idle() {
    return this.until(isIdle, 'nothing is left of any request');
  }

  signal(name) {
    this.child.kill(name);
  }

  async stop() {
    if (this.exit) return this.exit;
    let metrics;
    if (this.url) metrics = await this.idle();
    this.stopping = true;
    this.signal('SIGTERM');
    const exit = await this.ended;
    assert.deepEqual(exit, { code: 0, signal: null }, `${this.name()} did not end well:\n${this.stderr}`);
    if (metrics) {
      assert.equal(metrics.value('chasqui_loop_lost_exceptions_total'), 0, this.stderr);
      assert.equal(metrics.sum('chasqui_steps_failed_total'), 0, this.stderr);
    }
    return exit;
  }
}

export function isIdle(metrics) {
  const gauges = ['kv_slots_used', 'kv_cells_used', 'requests_running', 'requests_waiting', 'http_body_bytes'];
  return gauges.every((name) => metrics.sum(`chasqui_${name}`) === 0);
}

// A request to the admin listener, by its URL or `unix:PATH`; headers may say anything, Host too.
export function askAdmin(address, method, target, headers = {}) {
  const where = address.startsWith('unix:') ? { socketPath: address.slice(5) } : { host: '127.0.0.1', port: new URL(address).port };
  return new Promise((resolve, reject) => {
    const sent = http.request({ ...where, method, path: target, headers, agent: false, timeout: hangAfter }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.on('timeout', () => sent.destroy(new Error('no answer for too long')));
    sent.end();
  });
}
