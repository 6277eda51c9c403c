// What clients may cost: memory after many requests, and the patience with those who do not read.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import * as test from 'node:test';

import { answer, endless, streamChat, user } from './client.mjs';
import { connect, request } from './raw.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

async function residentBytes(server) {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024;
}

describe('memory', { skip: process.platform !== 'linux' && '/proc is needed' }, async () => {
  const server = await start(test, [...demo, '-np', '4', '--cache-ram', '0']);

  it('does not grow over a hundred requests one after another', async () => {
    const one = async (i) => {
      const fields = { max_tokens: 24, ignore_eos: true };
      if (i % 2) return answer(server, `Request ${i}: what is Chasqui?`, fields);
      return (await streamChat(server, `Request ${i}: what is Chasqui?`, fields)).collect();
    };
    for (let i = 0; i < 30; ++i) await one(i);
    const before = await residentBytes(server);
    for (let i = 30; i < 130; ++i) await one(i);
    const grown = (await residentBytes(server)) - before;
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_kv_cells_used'), 0);
    assert.equal(metrics.value('chasqui_requests_finished_total', { reason: 'length' }), 130);
    assert.ok(grown < 8 * 1024 * 1024, `${grown} bytes more`);
  });

  it('does not grow over a hundred clients that leave', async () => {
    const one = async () => {
      const stream = await streamChat(server, 'go on', endless);
      await stream.nextText();
      stream.leave();
    };
    for (let i = 0; i < 20; ++i) await one();
    const before = await residentBytes(server);
    for (let i = 0; i < 100; ++i) await one();
    await server.idle();
    assert.ok((await residentBytes(server)) - before < 8 * 1024 * 1024);
  });

  it('of connections is given back', async () => {
    const before = (await server.metrics()).value('chasqui_http_connections_open');
    const sockets = await Promise.all(Array.from({ length: 300 }, () => connect(server)));
    await server.until((metrics) => metrics.value('chasqui_http_connections_open') >= before + 300);
    for (const socket of sockets) socket.destroy();
    await server.until((metrics) => metrics.value('chasqui_http_connections_open') <= before + 1);
  });
});

describe('a client that does not read', async () => {
  // The name is in every chunk: a long one fills the buffers of the sockets quickly, and those of the client that does
  // read as well, unless it reads at the pace of the model.
  const paced = [...sim, '--sim-step', '2'];
  const server = await start(test, [...paced, '-np', '2', '-c', '2000000', '--alias', 'name'.repeat(2000)]);

  it('is cut, and another stream goes on meanwhile', async () => {
    const body = JSON.stringify({ stream: true, messages: user('go on'), ...endless });
    const deaf = await connect(server);
    deaf.pause();
    deaf.write(request('POST', '/v1/chat/completions', { 'Content-Length': Buffer.byteLength(body) }, body));
    await server.until((metrics) => metrics.value('chasqui_requests_running') === 1);

    const other = await streamChat(server, 'I do read', endless);
    for (let cut = false; !cut; ) {
      for (let i = 0; i < 50; ++i) await other.nextText();
      cut = (await server.metrics()).value('chasqui_slow_clients_total') >= 1;
    }
    await server.until((now) => now.value('chasqui_requests_running') === 1 &&
      now.value('chasqui_requests_finished_total', { reason: 'cancelled' }) === 1);
    for (let i = 0; i < 200; ++i) await other.nextText();
    other.leave();
    deaf.destroy();
    await server.idle();
    assert.equal((await answer(server, 'say: still here')).text, 'still here');
  });

  it('the answers to thousands of requests harms no other client', async () => {
    const deaf = await connect(server);
    deaf.pause();
    deaf.write('GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(3000));
    let answered = 0;
    await server.until((metrics) => {
      const before = answered;
      answered = metrics.value('chasqui_http_responses_total', { class: '2xx' });
      return answered === before + 1 && metrics.value('chasqui_http_exchanges_running') === 2;
    }, 'only /metrics is answered, and its own answer is stuck');
    assert.ok(answered < 3000, 'the socket took everything');
    assert.equal((await answer(server, 'say: next please')).text, 'next please');
    deaf.destroy();
    await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') === 1);
  });
});
