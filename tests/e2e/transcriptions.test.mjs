// What a sound says, asked as OpenAI's clients do it: with a form.
import assert from 'node:assert/strict';
import path from 'node:path';
import * as test from 'node:test';

import OpenAI, { toFile } from 'openai';

import { answer, ask, events, post, refused, user } from './client.mjs';
import { png, wav } from './pictures.mjs';
import { sim, start, testModel } from './server.mjs';

const { describe, it } = test;
const route = '/v1/audio/transcriptions';

function form(parts) {
  const out = new FormData();
  for (const [name, value] of Object.entries(parts)) {
    if (value instanceof Buffer) out.append(name, new Blob([value]), 'speech.wav');
    else out.append(name, String(value));
  }
  return out;
}
const send = (server, parts, where = route) => server.fetch(where, { method: 'POST', body: form(parts) });

describe('a sound', async () => {
  const model = testModel('24m-f16');
  const projector = path.join(path.dirname(model), 'projectors', 'mmproj-random-24m.gguf');
  const server = await start(test, ['-m', model, '--mmproj', projector, '-c', '4096', '-np', '2', '-t', '1']);
  const speech = wav(1);
  const input = { type: 'input_audio', input_audio: { data: speech.toString('base64'), format: 'wav' } };
  const brief = { max_tokens: 6, ignore_eos: true };
  let said;

  it('is asked about as in a chat', async () => {
    const body = await (await send(server, { file: speech, model: 'any', ...brief })).json();
    const chat = await answer(server, user([{ type: 'text', text: 'Transcribe audio to text' }, input]), brief);
    said = body.text;
    assert.equal(said, chat.text);
    assert.ok(said.length > 0);
    const { prompt_tokens: prompt, completion_tokens: completion } = chat.usage;
    const { input_tokens_details: details, ...usage } = body.usage;
    assert.deepEqual(usage, { type: 'tokens', input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion });
    assert.ok(details.cached_tokens >= 0);
    assert.equal((await (await send(server, { file: speech, ...brief }, '/audio/transcriptions')).json()).text, said);
  });

  it('is asked about in the words of the request', async () => {
    const body = await (await send(server, { file: speech, prompt: '7', language: 'en', ...brief })).json();
    const chat = await answer(server, user([{ type: 'text', text: '7 (language: en)' }, input]), brief);
    assert.equal(body.text, chat.text);
    assert.equal(body.usage.input_tokens, chat.usage.prompt_tokens);
  });

  it('may come as JSON', async () => {
    const file = speech.toString('base64');
    assert.equal((await ask(server, route, { file, ...brief })).text, said);
    assert.equal((await ask(server, route, { file, json_schema: { enum: ['a word'] } })).text, '"a word"');
  });

  it('is answered as text', async () => {
    const response = await send(server, { file: speech, response_format: 'text', ...brief });
    assert.match(response.headers.get('content-type'), /^text\/plain/);
    assert.equal(await response.text(), `${said}\n`);
  });

  it('is answered as a stream', async () => {
    const response = await send(server, { file: speech, stream: true, ...brief });
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    const all = [];
    for await (const event of events(response)) all.push(event);
    assert.equal(all.pop(), '[DONE]');
    const parsed = all.map((event) => JSON.parse(event));
    const done = parsed.pop();
    assert.equal(done.type, 'transcript.text.done');
    assert.equal(done.text, said);
    assert.equal(done.usage.output_tokens, 6);
    assert.ok(parsed.every(({ type }) => type === 'transcript.text.delta'));
    assert.equal(parsed.map(({ delta }) => delta).join(''), said);
  });

  it('is answered as the fields of all generations ask', async () => {
    for (const where of [route, '/audio/transcriptions']) {
      const ask = async (fields) => {
        const response = await send(server, { file: speech, max_tokens: 12, ignore_eos: true, ...fields }, where);
        const said = await response.json();
        assert.equal(response.status, 200, JSON.stringify(said));
        return said;
      };
      const hot = { temperature: 8, top_k: 0, top_p: 1, min_p: 0 };
      const drawn = async (fields) => (await ask({ ...hot, ...fields })).text;
      assert.match(await drawn({ grammar: 'root ::= [0-9]{5}', max_tokens: 100 }), /^\d{5}$/);
      assert.equal(await drawn({ seed: 1 }), await drawn({ seed: 1 }));
      assert.notEqual(await drawn({ seed: 1 }), await drawn({ seed: 2 }));
      assert.equal(await drawn({ seed: 1, top_k: 1 }), await drawn({ seed: 2, temperature: 0 }));
      assert.equal((await ask({ max_tokens: 5 })).usage.output_tokens, 5);
      const { text } = await ask({});
      const stop = text.slice(4, 7);
      assert.equal((await ask({ stop })).text, text.slice(0, text.indexOf(stop)));
    }
  });

  it("is sent by OpenAI's client", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'unused' });
    const file = await toFile(speech, 'speech.wav');
    assert.equal((await client.audio.transcriptions.create({ file, model: 'any', ...brief })).text, said);
    const text = await client.audio.transcriptions.create({ file, model: 'any', response_format: 'text', ...brief });
    assert.equal(text, `${said}\n`);
    let streamed = '';
    for await (const event of await client.audio.transcriptions.create({ file, model: 'any', stream: true, ...brief })) {
      if (event.type === 'transcript.text.delta') streamed += event.delta;
    }
    assert.equal(streamed, said);
  });

  it('is refused where it is none, or not asked about in a way that there is', async () => {
    for (const [parts, param, message] of [
      [{ model: 'any' }, 'file', /WAV, MP3 or FLAC/],
      [{ file: Buffer.from('RIFF....WAVEfmt ') }, 'file', /./],
      [{ file: speech, prompt: Buffer.from([0xe9]) }, 'prompt', /UTF-8/],
      [{ file: png(8, 8, 1) }, 'file', /must be a sound/],
      [{ file: Buffer.alloc(0) }, 'file', /base64/],
      [{ file: speech, response_format: 'srt' }, 'response_format', /json or text/],
      [{ file: speech, temperature: 'hot' }, 'temperature', /number/],
      [{ file: speech, stream: 7 }, 'stream', /true or false/],
    ]) {
      const error = await refused(await send(server, parts), 400);
      assert.equal(error.param, param, error.message);
      assert.match(error.message, message);
    }
    const raw = (type, body) => server.fetch(route, { method: 'POST', headers: { 'content-type': type }, body });
    assert.equal((await refused(await raw('multipart/form-data', 'x'), 400)).param, 'Content-Type');
    await refused(await raw('multipart/form-data; boundary=b', '--b\r\nno head'), 400);
    await refused(await raw('application/json', '{'), 400);
  });
});

describe('without a projector', async () => {
  const server = await start(test, ['-m', testModel('24m-f16'), '-c', '1024', '-np', '1', '-t', '1']);

  it('the error says what is missing', async () => {
    const error = await refused(await send(server, { file: wav(0.1) }), 400);
    assert.equal(error.param, 'file');
    assert.match(error.message, /takes no sounds; start the server with --mmproj FILE/);
  });
});

describe('of several models', async () => {
  const server = await start(test, [...sim, '-m', 'right.gguf', '-m', 'left.gguf', '-c', '4096', '-np', '1']);

  it('the form names the one that is asked', async () => {
    const body = await (await send(server, { file: wav(0.1), model: 'left', max_tokens: 2 })).json();
    assert.ok(body.text.length > 0);
    const error = await refused(await send(server, { file: wav(0.1), model: 'nosuch' }), 404);
    assert.match(error.message, /nosuch/);
    await refused(await post(server, `${route}?model=nosuch`, { file: wav(0.1).toString('base64') }), 404);
  });
});
