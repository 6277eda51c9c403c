// What was computed before is not computed again, the answers stay the same, and no tenant sees what others have asked.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, post, refused, streamChat, user } from './client.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const system = 'You are Chasqui, a server for language models. You answer questions about slots, cells, batches, ' +
  'steps, tenants and classes, briefly and in plain words. When you do not know something, you say so. You never ' +
  'invent names, numbers or flags, and you do not repeat the question before you answer it.';
const asked = (question) => [{ role: 'system', content: system }, { role: 'user', content: question }];
const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;
const bearer = (key) => ({ headers: { authorization: `Bearer ${key}` } });

async function promptTokens(server) {
  return (await server.idle()).value('chasqui_prompt_tokens_total');
}

describe('a long prefix that several prompts share', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
  test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  // With a disk, an idle server copies out what slots hold.
  const server = await start(test, [...demo, '-np', '4', '-c', '8192', '--cache-disk', folder]);

  it('is in host memory once', async () => {
    const common = `${system} ${'All of us have read the same long text before. '.repeat(100)}`;
    const bytes = [];
    for (const name of ['Anna', 'Bruno', 'Chaska', 'Dina']) {
      const prompt = `${common} My name is ${name}, and I would like to know why that is so, and who has said it first.`;
      const body = { prompt, max_tokens: 8, temperature: 0 };
      const first = await ask(server, '/v1/completions', body);
      const copied = (metrics) => metrics.value('chasqui_cached_slots_copied_out_total') > bytes.length;
      await server.until(copied, 'an idle server copies slots out');
      bytes.push((await server.idle()).value('chasqui_snapshot_bytes'));
      const again = await ask(server, '/v1/completions', body);
      assert.equal(cachedOf(again), first.usage.prompt_tokens - 1);
      assert.equal(again.choices[0].text, first.choices[0].text);
    }
    assert.ok(bytes[3] < 2 * bytes[0], `${bytes}`);
  });
});

describe('what a finished request has left in its slot', async () => {
  const value = (metrics, name, labels) => metrics.value(`chasqui_${name}`, labels);
  const copies = (metrics) => value(metrics, 'kv_save_seconds_count') + value(metrics, 'kv_restore_seconds_count');

  it('is copied nowhere while there are free slots, and goes on in place', async (t) => {
    const server = await start(t, [...demo, '-np', '4', '-c', '4096']);
    const messages = asked('What is a slot?');
    for (const question of ['And a cell?', 'And a step?', 'Thank you.']) {
      messages.push({ role: 'assistant', content: (await answer(server, messages, { max_tokens: 8 })).text });
      messages.push({ role: 'user', content: question });
    }
    await answer(server, 'Something else altogether, of which no other request knows.', { max_tokens: 8 });
    const metrics = await server.idle();
    assert.equal(copies(metrics), 0);
    assert.equal(value(metrics, 'cached_slots_reused_total', { how: 'in_place' }), 2);
    assert.equal(value(metrics, 'kv_slots_cached'), 2);
  });

  it('is copied to another slot for a request that only begins alike', async (t) => {
    const server = await start(t, [...demo, '-np', '4', '-c', '4096']);
    const [first, second] = [asked('What is a slot?'), asked('Who wrote this server, and when was that?')];
    const said = await answer(server, first, { max_tokens: 8 });
    const other = await answer(server, second, { max_tokens: 8 });
    assert.ok(cachedOf(other) > 40);
    const again = await answer(server, first, { max_tokens: 8 });
    assert.equal(cachedOf(again), again.usage.prompt_tokens - 1, 'it is there still');
    assert.equal(again.text, said.text);
    const metrics = await server.idle();
    assert.equal(value(metrics, 'cached_slots_reused_total', { how: 'copied' }), 1);
    assert.equal(value(metrics, 'kv_save_seconds_count'), 0);
  });

  it('is there when slots are needed again and again', async (t) => {
    const server = await start(t, [...demo, '-np', '4', '-c', '4096']);
    const prompt = (i) => `${i} is the number of this prompt, and it has a few more words.`;
    const texts = [];
    for (let i = 0; i < 12; ++i) texts.push((await ask(server, '/v1/completions', { prompt: prompt(i), max_tokens: 6, temperature: 0 })));
    for (let i = 0; i < 12; ++i) {
      const again = await ask(server, '/v1/completions', { prompt: prompt(i), max_tokens: 6, temperature: 0 });
      assert.equal(cachedOf(again), again.usage.prompt_tokens - 1);
      assert.equal(again.choices[0].text, texts[i].choices[0].text);
    }
    const metrics = await server.idle();
    assert.ok(value(metrics, 'cached_slots_copied_out_total') >= 8);
    assert.ok(value(metrics, 'cached_slots_dropped_total') >= 8);
  });
});

describe('a prompt that is new to all', () => {
  it('is computed once for those who ask at the same time', async (t) => {
    // Its rows take as long everywhere: where a model computes tokens as quickly as they are copied, none waits for another.
    // So many that the first request is still there when the others come.
    const server = await start(t, [...sim, '-np', '4', '-c', '65536']);
    const common = `${system} ${'All of us have read the same long text before. '.repeat(600)}`;
    const bodies = Array.from({ length: 12 }, (_, i) => ({
      temperature: 0, max_tokens: 4, messages: [{ role: 'system', content: common }, ...user(`Question number ${i}?`)],
    }));
    const answers = await Promise.all(bodies.map((body) => ask(server, '/v1/chat/completions', body)));
    const computed = await promptTokens(server);
    const longest = Math.max(...answers.map(({ usage }) => usage.prompt_tokens));
    assert.ok(computed <= longest + 11 * 24, `${computed} computed, the longest has ${longest}`);
    assert.equal(computed, answers.reduce((sum, each) => sum + each.usage.prompt_tokens - cachedOf(each), 0));
    const metrics = await server.metrics();
    assert.ok(metrics.value('chasqui_prefix_waits_total') > 0);
  });
});

describe('a prompt that was there before', async () => {
  const server = await start(test, [...demo, '-np', '4', '-c', '4096']);

  it('is counted as cached in a chat, whole and streamed, with its timings', async () => {
    const messages = asked('What is a slot?');
    const first = await answer(server, messages, { max_tokens: 8 });
    const again = await answer(server, messages, { max_tokens: 8 });
    assert.equal(cachedOf(again), again.usage.prompt_tokens - 1, 'the last token is computed for its logits');
    assert.equal(again.usage.prompt_tokens, first.usage.prompt_tokens);
    assert.equal(again.timings.cache_n, cachedOf(again));
    assert.equal(again.timings.prompt_n, 1);
    assert.equal(again.text, first.text);
    const streamed = await streamChat(server, messages, { max_tokens: 8, stream_options: { include_usage: true } });
    await streamed.collect();
    assert.deepEqual(streamed.chunks.at(-1).usage, again.usage);
    assert.equal(streamed.text, first.text);
  });

  it('is counted in completions, and as tokens too', async () => {
    const body = { prompt: `${system} And now: `, max_tokens: 4, temperature: 0 };
    const first = await ask(server, '/v1/completions', body);
    const again = await ask(server, '/v1/completions', body);
    assert.equal(cachedOf(again), first.usage.prompt_tokens - 1);
    const { tokens } = await ask(server, '/tokenize', { content: body.prompt, add_special: true, parse_special: true });
    const byTokens = await ask(server, '/v1/completions', { ...body, prompt: tokens });
    assert.equal(cachedOf(byTokens), cachedOf(again), 'every prompt is matched, whatever door it came through');
    assert.equal(byTokens.choices[0].text, first.choices[0].text);
  });

  it('is shared as far as it goes', async () => {
    await answer(server, asked('What is a cell?'), { max_tokens: 4 });
    const other = await answer(server, asked('How do I cancel a request?'), { max_tokens: 4 });
    const { prompt } = await ask(server, '/apply-template', { messages: [{ role: 'system', content: system }] });
    const { tokens } = await ask(server, '/tokenize', { content: prompt, parse_special: true });
    assert.ok(cachedOf(other) > tokens.length - 12, `${cachedOf(other)} of ${tokens.length}`);
    assert.ok(cachedOf(other) < other.usage.prompt_tokens);
  });

  it('is computed again for a request that wants it', async () => {
    const messages = asked('What is a tenant?');
    const without = { max_tokens: 4, cache_prompt: false };
    const first = await answer(server, messages, without);
    assert.equal(cachedOf(first), 0);
    const before = await promptTokens(server);
    const again = await answer(server, messages, without);
    assert.equal(cachedOf(again), 0);
    assert.equal(await promptTokens(server), before + again.usage.prompt_tokens);
    const third = await answer(server, messages, { max_tokens: 4 });
    assert.ok(cachedOf(third) < third.usage.prompt_tokens - 1, 'and nothing of it was kept');
  });

  it('costs each turn of a conversation no more than what is new', async () => {
    const messages = [{ role: 'system', content: system }];
    const questions = ['What is Chasqui?', 'What is a slot?', 'What is a cell?', 'And a batch?', 'Who decides?',
      'What is a step?', 'What is a tenant?', 'How do I cancel?', 'What is a class?', 'Thank you. Goodbye!'];
    let known = 0;
    for (const question of questions) {
      messages.push({ role: 'user', content: question });
      const turn = await answer(server, messages, { max_tokens: 24 });
      const computed = turn.usage.prompt_tokens - cachedOf(turn);
      const fresh = turn.usage.prompt_tokens - known;
      if (known > 0) assert.ok(computed <= fresh + 8, `${question}: ${computed} computed, ${fresh} are new`);
      known = turn.usage.prompt_tokens + turn.usage.completion_tokens;
      messages.push({ role: 'assistant', content: turn.text });
    }
  });

  it('shows in the metrics', async () => {
    const metrics = await server.idle();
    const { value } = { value: (name, labels) => metrics.value(`chasqui_${name}`, labels) };
    assert.ok(value('prefix_cache_queries_total', { result: 'hit' }) > 10);
    assert.ok(value('prefix_cache_queries_total', { result: 'miss' }) > 0);
    assert.ok(value('prompt_tokens_cached_total') > value('prompt_tokens_total'));
    assert.ok(value('snapshots') > 0 && value('snapshot_bytes') > 1000 && value('prefix_index_bytes') > 100);
    assert.ok(value('snapshots_kept_total') >= value('snapshots'));
    assert.ok(value('kv_save_seconds_count') > 0 && value('kv_restore_seconds_count') > 0);
    for (const name of ['snapshots_evicted_total', 'snapshots_refused_total']) assert.equal(value(name), 0, name);
  });
});

describe('the cache', async () => {
  it('changes no answer', async (t) => {
    const flags = [...demo, '-np', '2', '-c', '2048'];
    const [withCache, without] = [await start(t, flags), await start(t, [...flags, '--cache-ram', '0'])];
    for (const question of ['What is Chasqui?', 'What is a slot?', 'Say hello.', 'What is a slot?', 'What is Chasqui?']) {
      const turns = asked(question);
      for (let turn = 0; turn < 2; ++turn) {
        const [one, two] = [await answer(withCache, turns), await answer(without, turns)];
        assert.equal(one.text, two.text, question);
        assert.equal(one.usage.completion_tokens, two.usage.completion_tokens);
        assert.equal(cachedOf(two), 0);
        turns.push({ role: 'assistant', content: one.text }, { role: 'user', content: 'Can you say that again?' });
      }
    }
    assert.ok((await withCache.idle()).value('chasqui_prompt_tokens_cached_total') > 200);
    const limits = async (server) => (await (await server.fetch('/props')).json()).limits;
    assert.ok((await limits(withCache)).prefix_cache_bytes > 0);
    assert.equal((await limits(without)).prefix_cache_bytes, 0);
    const off = await without.idle();
    assert.equal(off.value('chasqui_snapshots_kept_total'), 0);
    assert.equal(off.value('chasqui_kv_save_seconds_count'), 0);
  });

  it('works in one pool of cells as well', async (t) => {
    const server = await start(t, [...demo, '-np', '4', '-c', '1024', '--kv-unified']);
    const first = await answer(server, asked('What is a slot?'), { max_tokens: 8 });
    const again = await answer(server, asked('What is a slot?'), { max_tokens: 8 });
    assert.equal(again.text, first.text);
    assert.equal(cachedOf(again), again.usage.prompt_tokens - 1);
  });

  it('can be off unless a request asks for it', async (t) => {
    const server = await start(t, [...sim, '--no-cache-prompt']);
    const messages = asked('Anything?');
    await answer(server, messages, { max_tokens: 4 });
    assert.equal(cachedOf(await answer(server, messages, { max_tokens: 4 })), 0);
    await answer(server, messages, { max_tokens: 4, cache_prompt: true });
    assert.ok(cachedOf(await answer(server, messages, { max_tokens: 4, cache_prompt: true })) > 0);
  });

  it('is each tenant’s own unless it is told to be shared', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
    t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
    const keys = path.join(folder, 'keys');
    writeFileSync(keys, 'key-of-alice name=alice\nother-key-of-alice name=alice\nkey-of-bob name=bob\n');
    for (const shared of [false, true]) {
      const server = await start(t, [...sim, '--api-key-file', keys, ...(shared ? ['--cache-shared'] : [])]);
      server.key = 'key-of-bob';
      const body = { temperature: 0, max_tokens: 4, messages: asked('What is a slot?') };
      const cached = async (key) => cachedOf(await ask(server, '/v1/chat/completions', body, bearer(key)));
      assert.equal(await cached('key-of-alice'), 0);
      assert.equal((await cached('key-of-bob')) > 0, shared);
      assert.ok((await cached('other-key-of-alice')) > 0, 'one tenant, two keys');
    }
  });

  it('stays within its limit', async (t) => {
    const server = await start(t, [...demo, '-np', '2', '-c', '2048', '--cache-ram', '2']);
    for (let i = 0; i < 30; ++i) await answer(server, `${i} ${system}`, { max_tokens: 4 });
    const metrics = await server.idle();
    assert.ok(metrics.value('chasqui_snapshot_bytes') <= 2 << 20);
    assert.ok(metrics.value('chasqui_snapshots_evicted_total') > 0);
  });
});

describe('a wrong wish', async () => {
  it('for the cache is refused by name', async (t) => {
    const server = await start(t, sim);
    for (const wrong of ['yes', 1, {}, []]) {
      for (const [route, body] of [['/v1/chat/completions', { messages: user('Hi') }], ['/generate', { prompt: 'Hi' }],
        ['/v1/completions', { prompt: 'Hi' }]]) {
        const error = await refused(await post(server, route, { ...body, cache_prompt: wrong }), 400);
        assert.equal(error.param, 'cache_prompt');
        assert.match(error.message, /true or false/);
      }
    }
  });

  it('on the command line ends the start', async () => {
    for (const wrong of ['-2', 'much', '1.5']) {
      const { code, stderr } = await run(['serve', ...sim, '--cache-ram', wrong]);
      assert.equal(code, 2, wrong);
      assert.match(stderr, /--cache-ram/);
    }
  });
});
