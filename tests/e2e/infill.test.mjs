// Gaps that are filled in, with a model whose tokens round a gap are those of a chat: what goes to it can be spelled out,
// and then the answers have to be the same.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, refused } from './client.mjs';
import { withGaps } from './gguf.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

const question = 'user\nWhat is Chasqui?';
const greedy = { temperature: 0, max_tokens: 30, cache_prompt: false };
const spelledOut = (before, prefix, suffix) => `${before}<|im_start|>${prefix}<|im_start|>${suffix}\n`;

describe('a gap', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-infill-'));
  test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  const model = path.join(folder, 'gaps.gguf');
  withGaps(model);
  const server = await start(test, [...demo, '-m', model]);
  const infill = (fields) => ask(server, '/infill', { input_prefix: question, input_suffix: 'assistant', ...greedy, ...fields });
  const same = async (got, prompt) => {
    const wanted = await ask(server, '/completion', { prompt, ...greedy });
    assert.ok(wanted.content.length > 20);
    assert.equal(got.content, wanted.content);
    // Each part is cut into tokens by itself.
    assert.ok(Math.abs(got.tokens_evaluated - wanted.tokens_evaluated) <= 2, `${got.tokens_evaluated}`);
  };

  it('is asked about between what comes before and after it', async () => {
    await same(await infill({}), spelledOut('', question, 'assistant'));
    await same(await infill({ input_suffix: 'user' }), spelledOut('', question, 'user'));
  });

  it('has a prompt behind the prefix', async () => {
    await same(await infill({ input_prefix: 'user\n', prompt: 'What is Chasqui?' }), spelledOut('', question, 'assistant'));
  });

  it('comes after other files', async () => {
    const files = [{ filename: 'a', text: 'The sea is blue.' }, { text: 'The road is long.' }];
    const before = files.map((file) => `\n\n--- snippet ---\n\n${file.text}`).join('');
    await same(await infill({ input_extra: files }), spelledOut(before, question, 'assistant'));
  });

  it('is asked about with what is near it, where not all fits', async () => {
    const { kv: { cells_per_slot: cells } } = await (await server.fetch('/props')).json();
    const far = 'It is far from here. '.repeat(cells / 4);
    const body = { input_prefix: far + question, input_suffix: `assistant${far}`, input_extra: [{ text: far }], prompt: ' Say it.' };
    const got = await infill(body);
    assert.ok(got.tokens_evaluated > cells / 2 && got.tokens_evaluated <= cells - 30, `${got.tokens_evaluated} of ${cells}`);
    assert.ok(got.prompt.includes(`${question} Say it.`), 'the end of the prefix, and the prompt');
    assert.ok(got.prompt.includes('<|im_start|>assistant'), 'the beginning of the suffix');
    const long = await post(server, '/infill', { ...body, prompt: far });
    assert.match((await refused(long, 400)).message, /exceeds the available context size/);
  });

  it('streams the same', async () => {
    const whole = await infill({});
    const text = await (await post(server, '/infill', {
      input_prefix: question, input_suffix: 'assistant', ...greedy, stream: true,
    })).text();
    const events = text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
    assert.equal(events.map((event) => event.content).join(''), whole.content);
    assert.equal(events.at(-1).stop, true);
  });

  it('is what a suffix means to OpenAI\'s and Ollama\'s clients', async () => {
    const whole = await infill({});
    const openai = await ask(server, '/v1/completions', { prompt: question, suffix: 'assistant', ...greedy });
    assert.equal(openai.choices[0].text, whole.content);
    const options = { temperature: 0, num_predict: 30 };
    const ollama = await ask(server, '/api/generate', { model: 'x', prompt: question, suffix: 'assistant', stream: false, options });
    assert.equal(ollama.response, whole.content);
  });

  it('is not tokenized where it cannot fit', async () => {
    const suffix = 'a '.repeat(8_000_000);
    for (const [path, body] of [['/v1/completions', { prompt: Array(128).fill('a'), suffix }], ['/api/generate', { prompt: 'a', suffix }]]) {
      const response = await post(server, path, body);
      assert.equal(response.status, 400);
      assert.match(JSON.stringify(await response.json()), /exceeds the available context size/, path);
    }
    const long = await post(server, '/v1/completions', { prompt: ['a', 'b'], suffix: 'a '.repeat(200_000) });
    assert.match((await refused(long, 400)).message, /exceeds the available context size/);
    const named = { input_prefix: '', input_suffix: '', input_extra: [{ filename: 'a'.repeat(5_000_000), text: '' }] };
    assert.match((await refused(await post(server, '/infill', named), 400)).message, /at most 4 MiB/);
  });

  it('needs both of its sides, and files that are files', async () => {
    for (const [fields, name] of [[{ input_prefix: undefined }, 'input_prefix'], [{ input_suffix: 3 }, 'input_suffix'],
      [{ input_extra: ['x'] }, 'input_extra[0]'], [{ input_extra: [{ filename: 'x' }] }, 'input_extra[0].text']]) {
      const body = { input_prefix: 'a', input_suffix: 'b', ...fields };
      assert.equal((await refused(await post(server, '/infill', body), 400)).param, name);
    }
  });
});
