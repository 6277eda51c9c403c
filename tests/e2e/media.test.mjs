// Pictures and sounds through every door, with the clients that people use: sent, counted, found in the cache again, not
// found by other tenants, and refused where they are none. The simulated engine takes them for what they begin with.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { generateText } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { ask, post, refused, user } from './client.mjs';
import { random } from './random.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
globalThis.AI_SDK_LOG_WARNINGS = false;

const positions = 16; // of each file, with the simulated engine
// One pixel; the tail makes it another file.
const png = (tail = '') => Buffer.concat([Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4' +
  '2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'), Buffer.from(tail)]);
const wav = Buffer.from('RIFF\0\0\0\0WAVEfmt ');
const dataUrl = (bytes, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`;
const image = (bytes = png()) => ({ type: 'image_url', image_url: { url: dataUrl(bytes) } });
const imageAt = (address) => ({ type: 'image_url', image_url: { url: address } });
const text = (words) => ({ type: 'text', text: words });
const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;
const brief = { max_tokens: 4, temperature: 0 };

describe('a picture that a client sends', async () => {
  const server = await start(test, [...sim, '-c', '8192']);
  const words = 'What is in it?';

  it('is taken from the SDK of OpenAI, in chats and responses', async () => {
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const sent = [text(words), image(), { type: 'input_audio', input_audio: { data: wav.toString('base64'), format: 'wav' } }];
    const chat = await openai.chat.completions.create({ model: 'sim', messages: user(sent), ...brief });
    const alone = await openai.chat.completions.create({ model: 'sim', messages: user(words), ...brief });
    assert.equal(chat.usage.prompt_tokens, alone.usage.prompt_tokens + 2 * positions);
    assert.ok(chat.choices[0].message.content.length > 0);
    const part = { type: 'input_image', image_url: dataUrl(png()), detail: 'auto' };
    const first = await openai.responses.create({ model: 'sim', max_output_tokens: 4,
      input: [{ role: 'user', content: [{ type: 'input_text', text: words }, part] }] });
    assert.ok(first.output_text.length > 0);
    const next = await openai.responses.create({ model: 'sim', max_output_tokens: 4, input: 'And now?', previous_response_id: first.id });
    assert.ok(next.usage.input_tokens_details.cached_tokens > positions, 'the picture of the response before is there');
    const { data } = await openai.responses.inputItems.list(first.id);
    assert.equal(data[0].content[1].image_url, dataUrl(png()));
  });

  it('is taken from the SDK of Anthropic, in messages and in results of tools', async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png().toString('base64') } };
    const messages = [{ role: 'user', content: [block, { type: 'text', text: words }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'shoot', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'Here' }, block] }] }];
    const tools = [{ name: 'shoot', input_schema: { type: 'object', properties: {} } }];
    const { input_tokens: count } = await anthropic.messages.countTokens({ model: 'sim', messages, tools });
    const answer = await anthropic.messages.create({ model: 'sim', max_tokens: 4, messages, tools });
    assert.ok(answer.content.length > 0);
    const { usage } = answer;
    assert.equal(usage.input_tokens + usage.cache_read_input_tokens, count);
    assert.ok(count > 2 * positions);
  });

  it('is taken from the client of Ollama, in chats and prompts', async () => {
    const ollama = new Ollama({ host: server.url });
    const images = [png().toString('base64')];
    const options = { num_predict: 4, temperature: 0 };
    const count = async (more) => (await ollama.chat({ model: 'sim', messages: [{ role: 'user', content: words, ...more }], options })).prompt_eval_count;
    assert.equal(await count({ images }), await count({}) + positions);
    const whole = await ollama.generate({ model: 'sim', prompt: words, images: [png()], options });
    assert.ok(whole.response.length > 0);
    assert.equal(whole.context, undefined);
    const { capabilities } = await ollama.show({ model: 'sim' });
    assert.ok(capabilities.includes('vision'), capabilities);
  });

  it('is taken from the Vercel AI SDK', async () => {
    const provider = createOpenAICompatible({ name: 'here', baseURL: `${server.url}/v1`, apiKey: 'none', includeUsage: true });
    const { text: said, usage } = await generateText({ model: provider('sim'), maxOutputTokens: 4, maxRetries: 0,
      messages: [{ role: 'user', content: [{ type: 'text', text: words }, { type: 'image', image: png() }] }] });
    assert.ok(said.length > 0);
    assert.ok(usage.inputTokens > positions);
  });

  it('stands where the marker stands in a native prompt', async () => {
    const { media_marker: marker, modalities } = await (await server.fetch('/props')).json();
    assert.equal(marker, '<__media__>');
    assert.deepEqual(modalities, { vision: true, audio: true });
    const prompt = { prompt_string: `one ${marker} two ${marker}`, multimodal_data: [png().toString('base64'), wav.toString('base64')] };
    const body = await ask(server, '/completion', { prompt, n_predict: 2 });
    assert.equal(body.prompt, prompt.prompt_string);
    assert.equal((await ask(server, '/completion', { prompt: [prompt, 'text'], n_predict: 2 })).length, 2);
    const { data, models } = await (await server.fetch('/v1/models')).json();
    assert.deepEqual(data[0].architecture, { input_modalities: ['text', 'image', 'audio'], output_modalities: ['text'] });
    assert.ok(models[0].capabilities.includes('multimodal'));
  });

  it('is read once for a conversation about it', async () => {
    const messages = [{ role: 'user', content: [image(png('the same')), text('What is it?')] }];
    const turn = () => ask(server, '/v1/chat/completions', { messages, ...brief });
    const first = await turn();
    messages.push(first.choices[0].message, { role: 'user', content: 'And what else?' });
    const second = await turn();
    assert.ok(cachedOf(second) >= first.usage.prompt_tokens, JSON.stringify(second.usage));
    messages[0].content[0] = image(png('another'));
    const other = await turn();
    assert.ok(cachedOf(other) < positions, 'another picture is another prompt');
  });
});

describe('a picture of one tenant', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-media-'));
  test.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  writeFileSync(path.join(folder, 'keys'), 'a name=alice\nb name=bob\nroot name=root admin=yes\n');
  const server = await start(test, [...sim, '-c', '8192', '--api-key-file', path.join(folder, 'keys')]);
  server.key = 'root';

  it('is not found by another', async () => {
    const body = { messages: user([image(png('mine')), text('What is it?')]), ...brief };
    const cached = async (key) => cachedOf(await ask(server, '/v1/chat/completions', body, { headers: { authorization: `Bearer ${key}` } }));
    assert.equal(await cached('a'), 0);
    assert.ok(await cached('a') > positions);
    assert.equal(await cached('b'), 0);
  });
});

describe('a file that is named', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-media-'));
  test.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  writeFileSync(path.join(folder, 'one.png'), png());
  const server = await start(test, [...sim, '-c', '8192', '--media-path', folder]);
  const words = 'What is in it?';
  const asks = {
    chat: (url) => ['/v1/chat/completions', { messages: user([imageAt(url), text(words)]), ...brief }],
    response: (url) => ['/v1/responses', { max_output_tokens: 4,
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }, { type: 'input_text', text: words }] }] }],
    message: (url) => ['/v1/messages', { max_tokens: 4,
      messages: user([{ type: 'image', source: { type: 'url', url } }, { type: 'text', text: words }]) }],
  };

  for (const [name, body] of Object.entries(asks)) {
    it(`in a ${name} is read from the folder of --media-path`, async () => {
      const tokens = ({ usage }) => usage.prompt_tokens ?? usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
      const sent = tokens(await ask(server, ...body(dataUrl(png()))));
      assert.equal(tokens(await ask(server, ...body('file://one.png'))), sent);
      assert.equal(tokens(await ask(server, ...body(`file://${folder}/one.png`))), sent);
    });

    it(`in a ${name} is not read from elsewhere`, async () => {
      for (const url of ['file://two.png', 'file:///etc/passwd', 'file://../one.png', 'file://']) {
        const response = await post(server, ...body(url));
        assert.match(await response.text(), /must name a file in the folder/);
        assert.equal(response.status, 400, url);
      }
    });
  }
});

const chat = (...parts) => ['/v1/chat/completions', { messages: user(parts), ...brief }];
const url = (address) => chat(text('a'), { type: 'image_url', image_url: { url: address } });
const wrong = [
  ['an address', url('https://example.org/a.png'), 'messages[0].content[1].image_url.url', /data URL.*not fetched from https/],
  ['a path', url('file:///etc/passwd'), 'messages[0].content[1].image_url.url', /not fetched from file/],
  ['no base64', url('data:image/png;base64,a*b='), 'messages[0].content[1].image_url.url', /as base64/],
  ['a text', url('data:text/plain;base64,aGk='), 'messages[0].content[1].image_url.url', /data URL/],
  ['no picture', url('data:image/png;base64,aGk='), 'messages', /PNG or JPEG/],
  ['nothing', chat({ type: 'image_url' }), 'messages[0].content[0].image_url', /data URL/],
  ['a sound of an unknown format', chat({ type: 'input_audio', input_audio: { data: 'aGk=', format: 'midi' } }),
    'messages[0].content[0].input_audio.format', /wav, mp3 or flac/],
  ['too many pictures', chat(...Array(65).fill(image())), 'messages[0].content[64]', /at most 64/],
  ['more than the context holds', chat(...Array(64).fill(image())), 'prompt', /exceeds the available context/],
  ['a picture by its id', ['/v1/responses', { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] }],
    'input[0].content[0].file_id', /left out/],
  ['a file more than markers', ['/completion', { prompt: { prompt_string: 'x', multimodal_data: ['aGk='] } }],
    'prompt.multimodal_data', /a file for each <__media__>/],
  ['no picture in a session', ['/v1/sessions', { messages: user([image(Buffer.from('hi'))]) }], 'messages', /PNG or JPEG/],
  ['a picture to embed', ['/v1/embeddings', { input: { prompt_string: 'x', multimodal_data: ['aGk='] } }], null, /./],
];

describe('what is no picture', async () => {
  const server = await start(test, [...sim, '-c', '1000', '-np', '1']);
  for (const [what, [target, body], field, message] of wrong) {
    it(`is refused: ${what}`, async () => {
      const response = await post(server, target, body);
      const error = await refused(response, response.status === 501 ? 501 : 400);
      if (field) assert.equal(error.param, field);
      assert.match(error.message, message);
    });
  }

  it('harms nothing in 1,000 mutated bodies', async () => {
    const from = random(28);
    const data = png().toString('base64');
    const seeds = [chat(image(), text('a'), { type: 'input_audio', input_audio: { data: wav.toString('base64'), format: 'wav' } }),
      ['/v1/messages', { max_tokens: 2, messages: user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }]) }],
      ['/api/chat', { stream: false, options: { num_predict: 2 }, messages: [{ role: 'user', content: 'a', images: [data, data] }] }],
      ['/api/generate', { stream: false, options: { num_predict: 2 }, prompt: 'a', images: [data] }],
      ['/v1/responses', { max_output_tokens: 2, input: [{ role: 'user', content: [{ type: 'input_image', image_url: dataUrl(png()) }] }] }],
      ['/completion', { n_predict: 2, prompt: { prompt_string: 'a <__media__> b', multimodal_data: [data] } }]];
    const statuses = {};
    for (let i = 0; i < 1000; ++i) {
      const [target, seed] = from.of(seeds);
      const body = mutated(structuredClone(seed), from);
      const response = await post(server, target, body);
      await response.arrayBuffer();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
      assert.ok(response.status < 500, `${response.status} ${target} ${JSON.stringify(body)}`);
    }
    assert.ok(statuses[200] > 50 && statuses[400] > 50, JSON.stringify(statuses));
    await server.idle();
  });
});

// With one to three of its values changed: another kind of thing, gone, twice, or letters of a text replaced.
function mutated(body, from) {
  for (let left = 1 + from.below(3); left > 0; --left) {
    const places = [];
    const walk = (value) => {
      for (const key of Object.keys(value)) {
        places.push([value, key]);
        if (value[key] && typeof value[key] === 'object') walk(value[key]);
      }
    };
    walk(body);
    if (places.length === 0) return body;
    const [place, key] = from.of(places);
    const value = place[key];
    const kinds = [() => { delete place[key]; }, () => { place[key] = from.of([null, 3, '', 'x', [], {}, true, [[]], 'data:,', 'http:']); },
      () => { place[key] = [value, value]; }];
    const scrambled = () => {
      const at = from.below(value.length + 1);
      place[key] = value.slice(0, at) + from.of(['', '=', '*', 'AAAA', '<__media__>', '\u0000', 'é']) + value.slice(at + from.below(3));
    };
    if (typeof value === 'string') kinds.push(scrambled, scrambled, scrambled);
    from.of(kinds)();
  }
  return body;
}

describe('a model that takes text alone', async () => {
  const server = await start(test, demo);

  it('says what would have to be started', async () => {
    const error = await refused(await post(server, ...chat(text('a'), image())), 400);
    assert.equal(error.param, 'messages[0].content[1]');
    assert.match(error.message, /takes no pictures; start the server with --mmproj FILE/);
    const { media_marker: marker, modalities } = await (await server.fetch('/props')).json();
    assert.equal(marker, undefined);
    assert.deepEqual(modalities, { vision: false, audio: false });
    const { data } = await (await server.fetch('/v1/models')).json();
    assert.deepEqual(data[0].architecture.input_modalities, ['text']);
  });
});
