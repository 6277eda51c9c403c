// The cases of http_cases.mjs, each in one piece and in many: answered as they must be, and afterwards the server is as
// it was before.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import * as test from 'node:test';

import { answer, endless, streamChat } from './client.mjs';
import { alone, groups } from './http_cases.mjs';
import { connect } from './raw.mjs';
import { hangAfter, sim, start } from './server.mjs';

const { describe, it } = test;
const sound = 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

// Sends the pieces one after the other and reads until the server closes.
async function talk(server, pieces, { end = false } = {}) {
  const socket = await connect(server);
  socket.setNoDelay(true);
  const parts = [];
  socket.on('data', (part) => parts.push(part));
  const over = new Promise((resolve) => {
    socket.once('end', resolve);
    socket.once('close', resolve);
  });
  for (const piece of pieces) {
    if (socket.destroyed || !socket.writable) break;
    await new Promise((resolve) => socket.write(piece, 'latin1', resolve));
  }
  if (end) socket.end();
  await over;
  socket.destroy();
  return Buffer.concat(parts).toString('latin1');
}

// The statuses of the answers in these bytes, which must be nothing but answers, whole ones.
function statuses(text) {
  const seen = [];
  for (let rest = text; rest.length > 0; ) {
    const match = /^HTTP\/1\.1 (\d{3}) [^\r\n]+\r\n(?:[\w-]+: [^\r\n]*\r\n)*\r\n/.exec(rest);
    assert.ok(match, `no answer: ${JSON.stringify(rest.slice(0, 200))}`);
    rest = rest.slice(match[0].length);
    const length = Number(/^Content-Length: (\d+)\r$/im.exec(match[0])?.[1] ?? 0);
    if (!rest.startsWith('HTTP/1.1 ')) rest = rest.slice(length); // an answer to HEAD has a length and no body
    if (match[1] !== '100') seen.push(Number(match[1]));
  }
  return seen;
}

function cut(bytes, size) {
  if (size >= bytes.length) return [bytes];
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.slice(i * size, (i + 1) * size));
}

const count = (folder) => readdirSync(folder).length;
const used = (server) => ({ descriptors: count(`/proc/${server.pid}/fd`), threads: count(`/proc/${server.pid}/task`) });

describe('hostile and odd HTTP', { skip: process.platform !== 'linux' && '/proc is needed' }, async () => {
  // The stream beside the cases ends neither for a full slot nor because it is not read.
  const server = await start(test, [...sim, '--sim-step', '2', '-np', '4', '-c', '400000',
    '--allowed-hosts', 'example.org,a-b_c.d~e,%41.example']);
  const canary = () => answer(server, 'tell me a story', { max_tokens: 30, ignore_eos: true });
  const other = await streamChat(server, 'go on', endless); // a client that must not notice
  await other.nextText();
  let heard = 0;
  other.readOn(() => ++heard);
  const before = used(server); // with no connection but that of the stream
  const { text: story } = await canary();

  for (const [group, cases] of Object.entries(groups)) {
    describe(group, () => {
      for (const [what, bytes, expected] of cases) {
        it(`${what}: ${expected.join(', ')}`, async () => {
          const all = bytes + sound;
          assert.deepEqual(statuses(await talk(server, [all])), expected, 'in one piece');
          const size = all.length > 2000 ? Math.ceil(all.length / 40) : 7;
          assert.deepEqual(statuses(await talk(server, cut(all, size))), expected, 'in many pieces');
        });
      }
    });
  }

  describe('followed by the end of the connection', () => {
    for (const [what, bytes, expected] of alone) {
      it(`${what}: ${expected.join(', ') || 'nothing'}`, async () => {
        assert.deepEqual(statuses(await talk(server, [bytes], { end: true })), expected);
      });
    }
  });

  it('leaves the server as it was', async () => {
    const then = heard;
    await server.until(() => heard > then, 'the stream goes on');
    await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') === 2, 'the stream and /metrics');
    // Until fetch has closed the connections that it keeps for some seconds.
    const end = Date.now() + hangAfter;
    let now = used(server);
    for (; now.descriptors > before.descriptors; now = used(server)) {
      assert.ok(Date.now() < end, `${now.descriptors} descriptors, ${before.descriptors} before`);
      await talk(server, [sound]);
    }
    assert.deepEqual(now, before);
    assert.equal((await canary()).text, story);
    const metrics = await server.metrics();
    assert.equal(metrics.value('chasqui_http_responses_total', { class: '5xx' }) > 0, true, '501 and 505 are among them');
    assert.equal(metrics.value('chasqui_loop_lost_exceptions_total'), 0);
    other.leave();
    const idle = await server.idle();
    assert.equal(idle.value('chasqui_http_body_bytes'), 0);
  });
});
