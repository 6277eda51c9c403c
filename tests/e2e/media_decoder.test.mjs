// The process that decodes what clients send: it is there where a projector is, and when it dies, waiting or decoding,
// the server goes on.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import * as test from 'node:test';

import { ask, post, refused, user } from './client.mjs';
import { about, png, wav } from './pictures.mjs';
import { hangAfter, start, testModel } from './server.mjs';

const { describe, it } = test;
const model = testModel('24m-f16');
const projector = path.join(path.dirname(model), 'projectors/mmproj-random-24m.gguf');
const flags = ['-m', model, '-np', '2', '-c', '2048', '-t', '1'];

const textOf = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // it has ended
  }
};
const numberIn = (id, field) => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(textOf(`/proc/${id}/status`))?.[1] ?? NaN);
const isDecoder = (id) => textOf(`/proc/${id}/cmdline`) === 'chasqui\0media-decoder\0';
const decodersOf = (server) =>
  readdirSync('/proc').filter((id) => /^\d+$/.test(id) && numberIn(id, 'PPid') === server.pid && isDecoder(id)).map(Number);
const restarts = (metrics) => metrics.value('chasqui_media_decoder_restarts_total');

// Each turn lets what has come be read, and asks again.
async function until(wish, what) {
  const end = Date.now() + hangAfter;
  while (!wish()) {
    assert.ok(Date.now() < end, `never happened: ${what}`);
    await setImmediate();
  }
}

const request = (picture) => ({ messages: user(about(picture, 'What is it?')), max_tokens: 2, temperature: 0 });
const look = (server, picture = png(60, 50, 3)) => ask(server, '/v1/chat/completions', request(picture));
// Its descriptors are closed then, by which the server knows; its command line is gone a moment before.
const hasEnded = (id) => !/^State:\s+[^ZX]/m.test(textOf(`/proc/${id}/status`));

describe('the process that decodes', async () => {
  const server = await start(test, [...flags, '--mmproj', projector]);
  let story;
  let large;

  it('is there before the first picture, and is confined', async () => {
    const [id, ...more] = decodersOf(server);
    assert.ok(id > 0);
    assert.deepEqual(more, []);
    assert.equal(numberIn(id, 'NoNewPrivs'), 1);
    assert.equal(numberIn(id, 'Seccomp'), 2);
    assert.equal(numberIn(id, 'Threads'), 1);
    const limits = textOf(`/proc/${id}/limits`);
    for (const name of ['Max file size', 'Max core file size', 'Max open files', 'Max processes']) {
      assert.match(limits, new RegExp(`^${name} +0 +0 `, 'm'));
    }
    if (process.getuid() !== 0) return; // who else may not look any further
    assert.deepEqual(readdirSync(`/proc/${id}/fd`).sort(), ['0', '1', '2']);
    assert.match(readlinkSync(`/proc/${id}/fd/0`), /^socket:/);
    assert.match(textOf(`/proc/${id}/environ`), /(^|\0)GGML_NO_BACKTRACE=1/);
    assert.doesNotMatch(textOf(`/proc/${id}/environ`), /(^|\0)PATH=/, 'nor has it the variables of the server');
  });

  it('stays for all of them, and is not counted', async () => {
    const before = decodersOf(server);
    story = (await look(server)).choices[0].message.content;
    const sound = { type: 'input_audio', input_audio: { data: wav(1).toString('base64'), format: 'wav' } };
    await ask(server, '/v1/chat/completions', { messages: user([sound]), max_tokens: 2 });
    const error = await refused(await post(server, '/v1/chat/completions', request(Buffer.from('no picture'))), 400);
    assert.match(error.message, /cannot be decoded/);
    assert.deepEqual(decodersOf(server), before);
    assert.equal(restarts(await server.metrics()), 0);
  });

  it('is not ended by what a service manager sends to all processes of a service', async () => {
    const before = decodersOf(server);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.kill(before[0], signal);
    assert.equal((await look(server)).choices[0].message.content, story);
    assert.deepEqual(decodersOf(server), before);
  });

  for (const signal of ['SIGKILL', 'SIGSEGV']) {
    it(`is replaced when it gets ${signal} while it waits`, async () => {
      const lost = restarts(await server.metrics());
      const [id] = decodersOf(server);
      process.kill(id, signal);
      await until(() => hasEnded(id), `${id} ends`);
      assert.equal((await look(server)).choices[0].message.content, story);
      assert.equal(restarts(await server.metrics()), lost + 1);
      assert.ok(!decodersOf(server).includes(id));
    });

    it(`is replaced when it gets ${signal} while it decodes, and that picture is refused`, async () => {
      large ??= png(5000, 5000, 1);
      const mebibytes = (id) => numberIn(id, 'VmRSS') / 1024;
      // Whether the signal comes while it decodes is up to the machine: a decoder that was quicker is asked again.
      for (let tries = 0; ; ++tries) {
        assert.ok(tries < 20, 'no signal came in time');
        const lost = restarts(await server.metrics());
        const [id] = decodersOf(server);
        const before = mebibytes(id);
        let over = false;
        const answer = post(server, '/v1/chat/completions', request(large)).finally(() => { over = true; });
        await until(() => over || mebibytes(id) > before + 40, `${id} decodes`);
        process.kill(id, signal);
        await until(() => hasEnded(id), `${id} ends`);
        const response = await answer;
        if (response.status === 200) {
          await response.arrayBuffer();
          await look(server);
          continue;
        }
        const error = await refused(response, 400);
        assert.match(error.message, /a picture cannot be decoded \(its decoder failed\)/);
        assert.equal(error.param, 'messages');
        assert.equal(restarts(await server.metrics()), lost + 1);
        break;
      }
      await server.says(/a process that decodes pictures and sounds was lost during="decoding a picture" reason="signal /);
      assert.equal((await look(server)).choices[0].message.content, story);
    });
  }

  it('ends with the server, also where that is killed', async (t) => {
    for (const signal of ['SIGTERM', 'SIGKILL']) {
      const other = await start(t, [...flags, '--mmproj', projector]);
      const [id] = decodersOf(other);
      assert.ok(id > 0);
      other.signal(signal);
      await other.ended;
      await until(() => hasEnded(id), `${id} ends after ${signal}`);
    }
  });
});

describe('a server without a projector', async () => {
  const server = await start(test, flags);

  it('starts no process to decode', async () => {
    assert.deepEqual(decodersOf(server), []);
    assert.ok(!(await server.metrics()).text.includes('chasqui_media_decoder'));
  });
});
