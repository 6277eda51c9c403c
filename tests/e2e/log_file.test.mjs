// --log-file, and what else llama-server's flags say of the server itself: tags, comments in streams that are silent.
import assert from 'node:assert/strict';
import * as test from 'node:test';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { answer, post, user } from './client.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-log-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const read = (name) => {
  try {
    return readFileSync(path.join(folder, name), 'utf8');
  } catch {
    return '';
  }
};
// Lines are written by a thread of its own.
async function says(server, name, words) {
  while (!words.test(read(name))) await server.metrics();
}

describe('--log-file', async () => {
  for (const [what, flags] of [['by itself', []], ['with a supervisor', ['--supervise']]]) {
    it(`has the lines, and is opened again after it was moved, ${what}`, async () => {
      const name = `${what}.log`;
      const server = await start(test, [...demo, ...flags, '--log-file', path.join(folder, name)]);
      await answer(server, 'x', { max_tokens: 1 });
      await says(server, name, / I request /);
      assert.ok(!server.stderr.includes(' I request '));
      renameSync(path.join(folder, name), path.join(folder, `${name}.1`));
      process.kill(server.pid, 'SIGHUP');
      await says(server, name, /log file opened again/);
      await answer(server, 'x', { max_tokens: 1 });
      await says(server, name, / I request /);
    });
  }

  it('is JSON unless it is asked for as text', async () => {
    for (const [name, format, line] of [['auto.log', 'auto', /^\{"time":.*"message":"request"/m], ['text.log', 'text', /Z I request /]]) {
      const server = await start(test, [...sim, '--log-format', format, '--log-file', path.join(folder, name)]);
      await answer(server, 'x', { max_tokens: 1 });
      await says(server, name, line);
    }
    for (const line of read('auto.log').trim().split('\n')) JSON.parse(line);
  });

  it('that cannot be written is named', async () => {
    const { code, stderr } = await run(['serve', '--port', '0', '--log-file', path.join(folder, 'no', 'such')]);
    assert.equal(code, 2);
    assert.match(stderr, /--log-file .*such: No such file/);
  });
});

describe('--tags', () => {
  it('are told with the model', async () => {
    const server = await start(test, [...demo, '--tags', 'small, chat']);
    const { data } = await (await server.fetch('/v1/models')).json();
    assert.deepEqual(data[0].tags, ['small', 'chat']);
  });
});

describe('--sse-ping-interval', () => {
  const silent = async (interval, field = {}, path = '/v1/chat/completions') => {
    const server = await start(test, [...sim, '--sim-step', field.sse_ping_interval > 0 ? '1500' : '400', '-np', '1', '--sse-ping-interval', interval]);
    const said = path === '/v1/responses' ? { input: 'x', max_output_tokens: 4 } : { messages: user('x'), max_tokens: 4 };
    const response = await post(server, path, { ...said, stream: true, ignore_eos: true, ...field });
    return await response.text();
  };

  it('is told by an event to clients that wait for events only', async () => {
    const message = await silent('0.1', {}, '/v1/messages');
    assert.match(message, /^event: ping\ndata: {"type":"ping"}\n\n/m);
    assert.doesNotMatch(message, /^: ?ping/m);
    const events = (await silent('0.1', {}, '/v1/responses')).matchAll(/^data: (.*)$/gm);
    const types = [...events].map(([, data]) => JSON.parse(data)).map((event, i) => {
      assert.equal(event.sequence_number, i);
      return event.type;
    });
    assert.deepEqual(types.slice(0, 3), ['response.created', 'response.in_progress', 'response.in_progress']);
    assert.equal(types.at(-1), 'response.incomplete');
  });

  it('says after how long a silent stream gets a comment', async () => {
    assert.match(await silent('0.1'), /^: ?ping/m);
  });

  it('gives way to what a request says', async () => {
    assert.doesNotMatch(await silent('0.1', { sse_ping_interval: -1 }), /^:/m);
    assert.match(await silent('-1', { sse_ping_interval: 1, max_tokens: 2 }), /^: ?ping/m);
  });

  it('is none with -1', async () => {
    assert.doesNotMatch(await silent('-1'), /^:/m);
  });
});
