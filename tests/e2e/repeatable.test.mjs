// The same request, the same bytes: on an idle server where nothing is found in the cache, whatever else the machine
// does; and with `deterministic` in any company, whatever the cache has. Likelihoods are compared to their last digit,
// which shows what texts hide. CHASQUI_REPEATS says how often (40), CHASQUI_REPEAT_MODELS with which models, and
// CHASQUI_REPEAT_LENGTHS how many tokens the prompts have, by turns, CHASQUI_REPEAT_TOKENS how many the answers.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as test from 'node:test';

import { ask, post, stream } from './client.mjs';
import { start, testModel } from './server.mjs';

const { describe, it } = test;

const repeats = Number(process.env.CHASQUI_REPEATS ?? 40);
const models = (process.env.CHASQUI_REPEAT_MODELS ?? '24m-f16,swa,hybrid,qwen35').split(',');
// Shorter than a chunk, longer than one, with a single row left over, and so deep that attention is split.
const lengths = (process.env.CHASQUI_REPEAT_LENGTHS ?? '40,200,513,1100').split(',').map(Number);
const times = 4; // on different servers
const prompt = (length, story = 0) => Array.from({ length }, (_, i) => 300 + ((i * (37 + story) + story * 101) % 600));
const greedy = { temperature: 0, max_tokens: Number(process.env.CHASQUI_REPEAT_TOKENS ?? 20), ignore_eos: true, logprobs: 4 };

const said = ({ choices }) => JSON.stringify(choices.map(({ text, logprobs }) => ({ text, logprobs })));
// How an answer differs from the first one: what is written in a failure, since the next run may not show it again.
function difference(got, expected) {
  const at = [...got].findIndex((character, i) => character !== expected[i]);
  const around = (text) => text.slice(Math.max(0, at - 60), at + 60);
  return at < 0 ? `ends after ${got.length} of ${expected.length}` : `${around(got)} for ${around(expected)}`;
}
const answer = (server, body) => ask(server, '/v1/completions', { ...greedy, ...body });

// What else a machine does: it comes and goes, so that measured times change. It ends with this process at the latest.
function otherWork(t) {
  const work = `const nap = new Int32Array(new SharedArrayBuffer(4));
    for (const parent = process.ppid; process.ppid === parent;) { for (const end = Date.now() + 30; Date.now() < end;); Atomics.wait(nap, 0, 0, Math.random() * 60); }`;
  const children = [1, 2].map(() => spawn(process.execPath, ['-e', work], { stdio: 'ignore' }));
  t.after(() => children.forEach((child) => child.kill('SIGKILL')));
}

for (const model of models) {
  describe(`random-${model}`, () => {
    const flags = ['-m', testModel(model), '-c', '8192', '-np', '4', '-t', '2'];

    it('answers the same request with the same bytes while the server is idle', async (t) => {
      otherWork(t);
      // One that has just started knows nothing yet.
      const servers = await Promise.all(Array.from({ length: 8 }, () => start(t, flags)));
      const differ = [];
      for (let story = 0; story < repeats / times; story++) {
        const length = lengths[story % lengths.length];
        const body = { prompt: prompt(length, story), cache_prompt: false };
        const first = said(await answer(servers[story % servers.length], body));
        for (let i = 1; i < times; i++) {
          const server = servers[(story + i) % servers.length];
          if (said(await answer(server, body)) !== first) differ.push(`${story} (${length} tokens)`);
        }
      }
      assert.deepEqual(differ, []);
    });

    it('answers a deterministic request with the same bytes in any company, whatever the cache has', async (t) => {
      const server = await start(t, [...flags, '--cache-ram', '64']);
      const fresh = await start(t, flags);
      const first = new Map();
      for (const length of lengths) {
        first.set(length, said(await answer(fresh, { prompt: prompt(length), deterministic: true, cache_prompt: false })));
      }
      otherWork(t);
      let over = false;
      const neighbour = async (story) => {
        for (let i = story; !over; i += 3) {
          const body = {
            prompt: prompt(lengths[i % lengths.length] + (i % 50), i % 3), temperature: 0, max_tokens: 10 + (i % 30),
            ignore_eos: true, deterministic: i % 4 === 1,
          };
          const running = await stream(server, '/v1/completions', body);
          if (i % 5 === 0) running.leave();
          else await running.collect();
        }
      };
      const company = [neighbour(0), neighbour(1), neighbour(2)];
      const differ = [];
      let cached = 0;
      for (let i = 0; i < repeats; i++) {
        const length = lengths[i % lengths.length];
        if (i % 11 === 10) await post(server, '/slots/0?action=erase', {});
        const got = await answer(server, { prompt: prompt(length), deterministic: true });
        cached += got.usage.prompt_tokens_details.cached_tokens;
        if (said(got) === first.get(length)) continue;
        const { usage } = got;
        differ.push(`${i}: ${JSON.stringify(usage)} ${difference(said(got), first.get(length))}`);
      }
      over = true;
      await Promise.all(company);
      assert.deepEqual(differ, []);
      if (model === '24m-f16') assert.ok(cached > 0, 'nothing came from the cache');
    });
  });
}
