// Adapters: chosen per request, never mixed, never confused by the cache. With real adapter files of random weights.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { answer, ask, endless, post, refused, streamChat, user } from './client.mjs';
import { binary, demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const here = path.dirname(fileURLToPath(import.meta.url));
const model = path.resolve(here, '../../models/demo/chasqui-demo.gguf');

const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-lora-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
function adapterFile(name, seed) {
  const file = path.join(folder, `${name}.gguf`);
  execFileSync(path.join(path.dirname(binary), 'mkmodel'), ['--adapter', model, file, '--seed', String(seed)]);
  return file;
}
const one = adapterFile('one', 1);
const two = adapterFile('two', 2);

const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;
const questions = ['What is a slot?', 'What is a cell?', 'How do I cancel a request?', 'What is Chasqui?',
  'Name the classes.', 'What is a step?', 'Who is a tenant?', 'What is a batch?'];

describe('adapters of a model', async () => {
  const flags = [...demo, '-np', '6', '-c', '6144', '--lora-init-without-apply', '--lora', `${one},${two}:second`];
  const server = await start(test, flags);
  const about = { max_tokens: 24 };

  it('are listed', async () => {
    const list = await (await server.fetch('/lora-adapters')).json();
    assert.deepEqual(list.map(({ id, name, path, scale }) => ({ id, name, path, scale })),
      [{ id: 0, name: 'one', path: one, scale: 0 }, { id: 1, name: 'second', path: two, scale: 0 }]);
    assert.deepEqual((await (await server.fetch('/props')).json()).lora, ['one', 'second']);
    const models = (await (await server.fetch('/v1/models')).json()).data.map(({ id }) => id);
    assert.deepEqual(models.slice(1), [`${models[0]}:one`, `${models[0]}:second`]);
  });

  it('change the answer, in every form in which they are asked for', async () => {
    const [{ id: name }] = (await (await server.fetch('/v1/models')).json()).data;
    const plain = await answer(server, questions[0], about);
    const first = await answer(server, questions[0], { ...about, lora: 'one' });
    const second = await answer(server, questions[0], { ...about, lora: 'second' });
    assert.notEqual(first.text, plain.text);
    assert.notEqual(second.text, plain.text);
    assert.notEqual(second.text, first.text);
    const same = [{ lora: { name: 'one' } }, { lora: [{ id: 0, scale: 1 }] }, { lora: [{ name: 'one', scale: 1 }] },
      { model: `${name}:one` }, { lora: { id: 0, scale: 1 } }];
    for (const form of same) {
      const again = await answer(server, questions[0], { ...about, ...form });
      assert.equal(again.text, first.text, JSON.stringify(form));
    }
    for (const form of [{ lora: [] }, { lora: { name: 'one', scale: 0 } }, { model: name }, { model: 'gpt-4' }]) {
      assert.equal((await answer(server, questions[0], { ...about, ...form })).text, plain.text, JSON.stringify(form));
    }
    const weak = await answer(server, questions[0], { ...about, lora: { name: 'one', scale: 0.25 } });
    assert.equal(cachedOf(weak), 0, 'another scale is another set');
    const completion = await ask(server, '/v1/completions', { prompt: 'A slot is', temperature: 0, max_tokens: 8 });
    const adapted = await ask(server, '/v1/completions',
      { prompt: 'A slot is', temperature: 0, max_tokens: 8, lora: 'one' });
    assert.notEqual(adapted.choices[0].text, completion.choices[0].text);
    const native = { prompt: 'A slot is', max_tokens: 8, stream: false };
    assert.notEqual((await ask(server, '/generate', { ...native, lora: 'one' })).text,
      (await ask(server, '/generate', native)).text);
  });

  it('are models by their own names, too, as in vLLM', async () => {
    const first = await answer(server, questions[0], { ...about, lora: 'one' });
    assert.equal((await answer(server, questions[0], { ...about, model: 'one' })).text, first.text);
    const messages = await ask(server, '/v1/messages', { model: 'one', messages: user(questions[0]), temperature: 0, ...about });
    assert.equal(messages.content[0].text, first.text);
    const response = await ask(server, '/v1/responses', { model: 'one', input: questions[0], temperature: 0, max_output_tokens: 24 });
    assert.equal(response.output[0].content[0].text, first.text);
    const latest = await ask(server, '/v1/messages', { model: 'one:latest', messages: user(questions[0]), temperature: 0, ...about });
    assert.equal(latest.content[0].text, first.text);
    const described = await (await server.fetch('/v1/models/one')).json();
    assert.match(described.id, /:one$/);
    assert.equal(described.id, `${described.parent}:one`);
  });

  it('and other names are refused where names are checked', async (t) => {
    const strict = await start(t, [...demo, '--check-model', '--alias', 'inca,maya', '--lora', `${one}:tone`]);
    for (const model of ['inca', 'maya', 'tone', 'inca:tone', 'tone:latest', 'inca:tone:latest', undefined]) await answer(strict, 'x', { ...about, model });
    for (const [route, body] of [['/v1/chat/completions', { messages: user('x') }], ['/v1/completions', { prompt: 'x' }], ['/v1/embeddings', { input: 'x' }],
      ['/v1/responses', { input: 'x' }]]) {
      const error = await refused(await post(strict, route, { ...body, model: 'gpt-4o' }), 404);
      assert.equal(error.param, 'model');
      assert.match(error.message, /no model gpt-4o.*inca/);
    }
    const response = await post(strict, '/v1/messages', { model: 'claude', max_tokens: 4, messages: user('x') });
    assert.equal(response.status, 404);
    assert.equal((await response.json()).error.type, 'not_found_error');
    const scales = await post(strict, '/lora-adapters', [{ id: 0, scale: 0 }]);
    assert.equal(scales.status, 200, 'a body that names no model');
    await scales.text();
  });

  it('that do not exist are refused, and the error says which do', async () => {
    const [{ id: name }] = (await (await server.fetch('/v1/models')).json()).data;
    const wrong = [
      [{ lora: 'three' }, 'lora'], [{ lora: { name: 'three' } }, 'lora.name'], [{ lora: [{ id: 2, scale: 1 }] }, 'lora[0].id'],
      [{ model: `${name}:three` }, 'model'], [{ lora: [{ name: 5 }] }, 'lora[0].name'],
    ];
    for (const [form, param] of wrong) {
      const error = await refused(
        await post(server, '/v1/chat/completions', { messages: user('hello'), ...form }), 400);
      assert.equal(error.param, param, JSON.stringify(form));
      if (param !== 'lora[0].name') assert.match(error.message, /one and second/);
    }
    for (const lora of [5, true, [5], { scale: 1 }, { name: 'one', scale: 'much' }, { name: 'one', scale: 1e9 }]) {
      await refused(await post(server, '/v1/chat/completions', { messages: user('hello'), lora }), 400);
    }
  });

  it('do not see what others have computed', async () => {
    const messages = user('A question that is asked with each set of adapters in its turn, and is long enough to keep.');
    for (const lora of [[], 'one', 'second', [{ id: 0, scale: 0.5 }, { id: 1, scale: 0.5 }]]) {
      const first = await answer(server, messages, { max_tokens: 3, lora });
      // What begins every prompt may be there from before.
      assert.ok(cachedOf(first) < 8, `${cachedOf(first)} with ${JSON.stringify(lora)}`);
      const again = await answer(server, messages, { max_tokens: 3, lora });
      assert.equal(cachedOf(again), again.usage.prompt_tokens - 1);
      assert.equal(again.text, first.text);
    }
  });

  it('do not read what others have written to disk', async (t) => {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'chasqui-lora-disk-'));
    t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 20 }));
    const messages = user('The relay runner waits at the post until the next one comes into sight. '.repeat(12));
    const said = {};
    for (const round of [0, 1]) {
      const one = await start(t, [...flags, '--cache-disk', dir]);
      for (const lora of ['one', 'second', []]) {
        // Few tokens: further on, likelihoods that are nearly equal decide by the size of the batch.
        const got = await answer(one, messages, { max_tokens: 3, temperature: 0, lora });
        const name = JSON.stringify(lora);
        if (round === 0) {
          assert.ok(cachedOf(got) < 8, `${cachedOf(got)} with ${name}`);
          said[name] = got.text;
        } else {
          assert.ok(cachedOf(got) > 100, `${cachedOf(got)} with ${name}`);
          assert.equal(got.text, said[name]);
        }
      }
      await one.stop();
    }
  });

  it('answer the same under a mixed load as alone', async () => {
    const sets = [[], 'one', 'second'];
    const fields = { max_tokens: 16, cache_prompt: false };
    const sayAll = async (list) => new Map(await Promise.all(list.map(async ([lora, question]) =>
      [JSON.stringify([lora, question]), (await answer(server, question, { ...fields, lora })).text])));
    const alone = new Map();
    for (const lora of sets) {
      for (const question of questions) for (const [key, text] of await sayAll([[lora, question]])) alone.set(key, text);
    }
    const before = await server.metrics();
    const mixed = await sayAll(sets.flatMap((lora) => questions.map((question) => [lora, question])));
    assert.equal(mixed.size, 24);
    // Where two tokens are equally likely to the last digits, which a random adapter often finds, the number of rows in a
    // batch decides, without other sets, too. The model alone is never in doubt here, and a set that was applied to the
    // wrong rows would spoil most answers. The simulated model, below, is exact.
    const other = [...mixed.keys()].filter((key) => mixed.get(key) !== alone.get(key));
    assert.ok(other.length <= 4, `${other.length} of 24 are not the same: ${other}`);
    assert.deepEqual(other.filter((key) => key.startsWith('[[]')), []);
    assert.ok(new Set(alone.values()).size >= 16, 'the sets give different answers');
    const after = await server.idle();
    for (const adapter of ['none', 'one', 'second']) {
      const steps = after.value('chasqui_adapter_steps_total', { adapter }) -
        before.value('chasqui_adapter_steps_total', { adapter });
      assert.ok(steps > 0, `${adapter}: ${steps}`);
    }
    assert.ok(after.value('chasqui_adapter_switches_total') > before.value('chasqui_adapter_switches_total'));
  });

  it('are told to gateways while requests want them, as vLLM tells it', async () => {
    const info = (metrics) => metrics.all('vllm:lora_requests_info').map(({ labels }) => labels);
    assert.deepEqual(info(await server.metrics()), [{ max_lora: '2', running_lora_adapters: '', waiting_lora_adapters: '' }]);
    // As the requests say it: a gateway looks for what they say.
    const [{ id: name }] = (await (await server.fetch('/v1/models')).json()).data;
    const streams = await Promise.all([{ lora: 'second' }, { lora: 'one' }, { model: `${name}:one` }]
      .map((wish) => streamChat(server, user(questions[0]), { ...endless, max_tokens: 900, ...wish })));
    await server.until((metrics) => info(metrics)[0].running_lora_adapters === `one,${name}:one,second`);
    const { value } = (await server.metrics()).all('vllm:lora_requests_info')[0];
    assert.ok(Math.abs(value - Date.now() / 1000) < 3600, `${value} is no time`);
    for (const stream of streams) stream.leave();
    await server.until((metrics) => info(metrics)[0].running_lora_adapters === '');
  });

  it('are those of a session while it generates', async () => {
    const { id } = await ask(server, '/v1/sessions', { messages: user(questions[3]) });
    const path = `/v1/sessions/${id}/generate`;
    const said = await ask(server, path, { temperature: 0, lora: 'one', ...about });
    const alone = await answer(server, questions[3], { ...about, lora: 'one' });
    assert.equal(said.choices[0].message.content, alone.text);
    await refused(await post(server, path, { lora: 'three' }), 400);
  });

  it('can be made the standing ones', async () => {
    const plain = await answer(server, questions[1], about);
    const second = await answer(server, questions[1], { ...about, lora: 'second' });
    assert.deepEqual(await ask(server, '/lora-adapters', [{ id: 1, scale: 1 }]), { success: true });
    assert.equal((await answer(server, questions[1], about)).text, second.text);
    assert.equal((await answer(server, questions[1], { ...about, lora: [] })).text, plain.text);
    const list = await (await server.fetch('/lora-adapters')).json();
    assert.deepEqual(list.map(({ scale }) => scale), [0, 1]);
    for (const body of ['{}', '[5]', '[{"id":9,"scale":1}]', '[{"id":0,"scale":"x"}]', 'nonsense']) {
      await refused(await post(server, '/lora-adapters', body), 400);
    }
    await ask(server, '/lora-adapters', []);
    assert.equal((await answer(server, questions[1], about)).text, plain.text);
  });

  it('that stand are those of embeddings', async () => {
    const vector = async () => (await ask(server, '/v1/embeddings', { input: 'A relay of runners' })).data[0].embedding;
    const plain = await vector();
    await ask(server, '/lora-adapters', [{ id: 1, scale: 1 }]);
    const second = await vector();
    assert.notDeepEqual(second, plain);
    await ask(server, '/lora-adapters', [{ id: 0, scale: 1 }]);
    assert.notDeepEqual(await vector(), second);
    await ask(server, '/lora-adapters', []);
    assert.deepEqual(await vector(), plain);
  });
});

describe('flags for adapters', () => {
  it('apply an adapter to all who say nothing, as llama-server does', async (t) => {
    const server = await start(t, [...demo, '-np', '2', '-c', '2048', '--lora-scaled', `${one}:0.5:half`]);
    const [{ name, scale }] = await (await server.fetch('/lora-adapters')).json();
    assert.deepEqual({ name, scale }, { name: 'half', scale: 0.5 });
    const unsaid = await answer(server, questions[0], { max_tokens: 16 });
    const named = await answer(server, questions[0], { max_tokens: 16, lora: 'half' });
    assert.equal(named.text, unsaid.text);
    assert.ok(cachedOf(named) > 0);
  });

  it('refuse what is not an adapter for this model', async () => {
    for (const file of [model, binary]) {
      const { code, stderr } = await run(['serve', ...demo, '--port', '0', '--lora', file]);
      assert.equal(code, 1, file);
      assert.match(stderr, /Cannot load the adapter/);
    }
    const missing = await run(['serve', ...demo, '--port', '0', '--lora', path.join(folder, 'missing.gguf')]);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /--lora: .*missing\.gguf: No such file/);
    const twice = await run(['serve', ...demo, '--port', '0', '--lora', `${one},${one}`]);
    assert.equal(twice.code, 2);
    assert.match(twice.stderr, /two adapters are called one/);
  });

  it('work without a model, too', async (t) => {
    const server = await start(t, [...sim, '--lora-init-without-apply', '--lora', 'any.gguf:tone']);
    const plain = await answer(server, 'Tell me something.', { max_tokens: 16 });
    assert.notEqual((await answer(server, 'Tell me something.', { max_tokens: 16, lora: 'tone' })).text, plain.text);
  });

  it('keep 3 sets × 8 streams apart to the last token', async (t) => {
    const flags = ['-np', '5', '--lora-init-without-apply', '--lora', 'a.gguf,b.gguf'];
    const server = await start(t, [...sim, ...flags]);
    const fields = { max_tokens: 200, ignore_eos: true };
    const asked = [[], 'a', 'b'].flatMap((lora) => questions.map((question) => ({ question, lora })));
    const alone = [];
    for (const { question, lora } of asked) alone.push((await answer(server, question, { ...fields, lora })).text);
    assert.equal(new Set(alone).size, 24);
    const together = await Promise.all(asked.map(({ question, lora }) => answer(server, question, { ...fields, lora })));
    assert.deepEqual(together.map(({ text }) => text), alone);
  });
});
