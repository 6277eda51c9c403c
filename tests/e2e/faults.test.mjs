// What goes wrong around the server: a worker that hangs, a log without a reader, a machine that is out of descriptors.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import http from 'node:http';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, streamChat, user } from './client.mjs';
import { connect } from './raw.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;
const hang = (server, seconds) => post(server, '/v1/chat/completions', { messages: user(`hang: ${seconds}`) });

// Asks until the answer is this one.
async function health(server, status) {
  for (;;) {
    const response = await server.fetch('/health');
    const text = await response.text();
    if (response.status === status) return text;
  }
}

async function toTheEnd(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

describe('a reader of the log that stops', async () => {
  const server = await start(test, [...sim, '--alias', 'name'.repeat(500)]);
  const line = /I request /g;

  it('keeps no client waiting, and is told later how much it missed', async () => {
    server.child.stderr.pause();
    for (let i = 0; i < 60; ++i) {
      await Promise.all(Array.from({ length: 100 }, () => answer(server, 'say: here', { max_tokens: 1 })));
    }
    const dropped = async () => (await server.metrics()).value('chasqui_log_lines_dropped_total');
    assert.ok((await dropped()) > 0);
    server.child.stderr.resume();
    const seen = () => (server.stderr.match(line) ?? []).length;
    // The last answers may have come before their lines.
    while (seen() + (await dropped()) < 6000);
    await answer(server, 'say: here again');
    while (!/W log lines are missing lines=\d+/.test(server.stderr)) await server.metrics();
    const missing = Number(/log lines are missing lines=(\d+)/.exec(server.stderr)[1]);
    assert.equal(missing, await dropped());
    while (seen() + missing < 6001) await server.metrics();
  });

  it('does not take the server with it when it ends', async (t) => {
    const server = await start(t, [...sim]);
    server.child.stderr.destroy();
    for (let i = 0; i < 3; ++i) assert.equal((await answer(server, 'say: here')).text, 'here');
    await server.until((metrics) => metrics.value('chasqui_log_lines_dropped_total') >= 3);
  });
});

describe('a worker that hangs', async () => {
  it('turns /health red, and its requests get an error until it moves', async (t) => {
    const server = await start(t, [...sim, '-np', '4', '-c', '400000', '--stuck-after', '0.5']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    const whole = hang(server, 6);
    assert.match(await health(server, 503), /has not finished a step/);
    assert.match((await refused(await whole, 500)).message, /hangs/);
    const chunks = await toTheEnd(stream);
    assert.match(chunks.at(-1).error.message, /hangs/);
    const late = await post(server, '/v1/chat/completions', { messages: user('is anybody there?') });
    assert.match((await refused(late, 500)).message, /hangs/);
    assert.equal(await health(server, 200), '{"status":"ok"}');
    assert.equal((await answer(server, 'say: here again')).text, 'here again');
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_worker_stalls_total'), 1);
    while (!/a worker hangs[^]*the worker moves again/.test(server.stderr)) await health(server, 200);
  });

  it('gives a session back as it was', async (t) => {
    const server = await start(t, [...sim, '--stuck-after', '0.5']);
    const opened = await ask(server, '/v1/sessions', { messages: user('hang: 4') });
    await refused(await post(server, `/v1/sessions/${opened.id}/generate`, {}), 500);
    const after = await (await server.fetch(`/v1/sessions/${opened.id}`)).json();
    assert.deepEqual([after.state, after.tokens], ['idle', opened.tokens]);
    await health(server, 200);
    await ask(server, `/v1/sessions/${opened.id}/append`, { messages: user('say: well') });
    const said = await ask(server, `/v1/sessions/${opened.id}/generate`, {});
    assert.equal(said.choices[0].message.content, 'well');
  });

  it('leaves the other one to its clients', async (t) => {
    const server = await start(t, [...sim, '-np', '8', '-c', '800000', '--workers', '2', '--stuck-after', '0.5']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText(); // … so that the next one goes to the other worker
    const whole = hang(server, 5);
    assert.match(await health(server, 503), /worker \d of 2/);
    assert.match((await refused(await whole, 500)).message, /hangs/);
    for (let i = 0; i < 20; ++i) await stream.nextText();
    assert.equal((await answer(server, 'say: of the other')).text, 'of the other');
    await health(server, 200);
    stream.leave();
    assert.equal((await server.idle()).sum('chasqui_worker_stalls_total'), 1);
  });

  it('is not a process that was stopped for a while', async (t) => {
    const server = await start(t, [...sim, '-c', '400000', '--stuck-after', '0.5']);
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    for (let i = 0; i < 3; ++i) {
      server.signal('SIGSTOP');
      await new Promise((resolve) => setTimeout(resolve, 1200)); // the fault itself: time passes without it
      server.signal('SIGCONT');
      for (let pieces = 0; pieces < 50; ++pieces) await stream.nextText();
    }
    stream.leave();
    assert.equal((await server.idle()).value('chasqui_worker_stalls_total'), 0);
  });
});

describe('a server that is out of descriptors', { skip: process.platform !== 'linux' && 'prlimit is needed' }, async () => {
  it('goes on with those it has, and takes the others when it can', async (t) => {
    const server = await start(t, sim);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const ask = (target) => new Promise((resolve, reject) => {
      http.get(server.url + target, { agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part) => (text += part)).on('end', () => resolve(text));
      }).on('error', reject);
    });
    assert.equal(await ask('/health'), '{"status":"ok"}');
    const most = readdirSync(`/proc/${server.pid}/fd`).length + 10;
    execFileSync('prlimit', ['--pid', String(server.pid), `--nofile=${most}:${most}`]);
    const crowd = await Promise.all(Array.from({ length: 60 }, () => connect(server)));
    const failures = async () => Number(/^chasqui_http_accept_failures_total (\d+)$/m.exec(await ask('/metrics'))[1]);
    while ((await failures()) === 0);
    const begun = performance.now();
    const before = await failures();
    for (let i = 0; i < 50; ++i) assert.equal(await ask('/health'), '{"status":"ok"}');
    const more = (await failures()) - before;
    const ms = performance.now() - begun;
    assert.ok(more <= 2 + ms / 25, `${more} in ${ms} ms: it tries again every 50 ms, not again and again`);
    for (const socket of crowd) socket.destroy();
    assert.equal((await answer(server, 'say: room again')).text, 'room again');
  });
});
