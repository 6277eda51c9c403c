// Models whose memory cannot be cut (a sliding window, a state, or both) keep checkpoints of a prompt: a chat goes on, is
// answered again, is edited, or begins like another one, and only what is new is computed. CHASQUI_ALL_WAYS=1 tries each
// template after restarts, too.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask } from './client.mjs';
import { demo, run, start, testModel } from './server.mjs';

const { describe, it } = test;

const modelFlags = (name) => ['-m', testModel(name), '-np', '2', '-c', '2048'];
const words = (count, seed) => Array.from({ length: count }, (_, i) =>
  ['time', 'river', 'stone', 'paper', 'green', 'window', 'always', 'under'][(i * i * seed + 3 * i + seed) % 8]).join(' ');

const said = (content) => `
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + ${content} + '<|im_end|>\\n' -}}
{%- endfor -%}`;
const begins = (what) => `{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n${what}' -}}{%- endif -%}`;
const templates = {
  plain: `${said('message.content')}${begins('')}`,
  // Drops the reasoning of earlier turns, and begins the answer with some.
  thinking: `${said("message.content.split('</think>')[-1]")}${begins('<think>\\n')}`,
  // The tools belong to the system message, and calls are JSON.
  tools: `{%- if tools -%}{{- '<|im_start|>system\\n' + messages[0].content + '\\n# Tools\\n' + (tools | tojson) + '<|im_end|>\\n' -}}
{%- set messages = messages[1:] -%}{%- endif -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- for call in message.tool_calls or [] -%}
{{- '<tool_call>\\n' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}${begins('')}`,
};
const tool = (name) => ({ type: 'function', function: {
  name, description: words(20, 5), parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
} });
// The words of the templates that two prompts differ by, at most.
const margin = 24;

async function folder(t) {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
  return dir;
}

async function withTemplate(dir, name) {
  const file = path.join(dir, `${name}.jinja`);
  await fs.writeFile(file, templates[name]);
  return ['--chat-template-file', file];
}

const system = { role: 'system', content: words(220, 1) };
const user = (seed) => ({ role: 'user', content: words(30, seed) });
const assistant = (seed) => ({ role: 'assistant', content: `<think>${words(15, seed)}</think>${words(10, seed + 1)}` });
const call = (seed) => ({ role: 'assistant', content: null, tool_calls: [
  { id: `c${seed}`, type: 'function', function: { name: 'read', arguments: JSON.stringify({ path: words(3, seed) }) } }] });
const result = (seed) => ({ role: 'tool', tool_call_id: `c${seed}`, content: words(30, seed) });

async function chat(server, messages, fields = {}) {
  const { text, usage } = await answer(server, messages, { max_tokens: 8, ...fields });
  return { text, prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens };
}

const tokensOf = async (server, messages, fields = {}) => {
  const { prompt } = await ask(server, '/apply-template', { messages, add_generation_prompt: false, ...fields });
  return (await ask(server, '/tokenize', { content: prompt, parse_special: true })).tokens.length;
};

// What lies between two requests.
const ways = {
  'in memory': { flags: () => [], between: (server) => server },
  // Others take the memory, so that all but the newest has to come from files.
  'from disk': {
    flags: (dir, model) => ['--cache-disk', path.join(dir, 'cache'), '--cache-ram', model === '24m-f16' ? '64' : '8'],
    async between(server) {
      // What a slow disk has no time for is dropped, and that is not what is asked here.
      const written = () => server.until((metrics) => metrics.value('chasqui_disk_queue') === 0, 'all is written');
      await written();
      for (const seed of [41, 42, 43, 44, 45, 46, 47, 48]) {
        await answer(server, [{ role: 'user', content: words(1500, seed) }], { max_tokens: 1 });
        await written();
      }
      return server;
    },
  },
  'after restarts': {
    flags: (dir) => ['--cache-disk', path.join(dir, 'cache')],
    async between(server, restart) {
      await server.stop();
      return restart();
    },
  },
};

// By default not each template in each way.
const everything = process.env.CHASQUI_ALL_WAYS !== undefined;

for (const model of ['24m-f16', 'swa', 'hybrid', 'qwen35', 'recurrent']) {
  for (const name of Object.keys(templates)) {
    for (const [what, way] of Object.entries(ways)) {
      if (!everything && name !== 'thinking' && what !== 'in memory') continue;
      it(`a chat with random-${model} and a ${name} template computes only what is new, ${what}`, async (t) => {
        const dir = await folder(t);
        const flags = ['-m', testModel(model), '-np', '2', '-c', '4096', ...await withTemplate(dir, name)];
        const mine = [...flags, ...way.flags(dir, model)];
        let server = await start(t, mine);
        const bare = await start(t, [...flags, '--cache-ram', '0']);
        // Few tokens: of random weights, some later one is nearly as likely as another, and rounding decides.
        const fields = { max_tokens: 4, ...name === 'tools' && { tools: [tool('read'), tool('write')], tool_choice: 'none' } };
        const same = async (messages) => {
          const one = await chat(server, messages, fields);
          assert.equal(one.text, (await chat(bare, messages, fields)).text, 'the answer is the same as without a cache');
          server = await way.between(server, () => start(t, mine));
          return one;
        };
        const shares = [];
        const known = (one, least, of = one.prompt) => {
          shares.push((one.cached / of).toFixed(3));
          assert.ok(one.cached >= least * of, `${one.cached} of ${of}; before it ${shares}`);
        };
        const long = { role: 'system', content: words(700, 1) };
        const messages = [long, user(2)];
        assert.equal((await same(messages)).cached, 0);
        for (const seed of [3, 4, 5]) {
          messages.push(...(name === 'tools' ? [call(seed), result(10 + seed)] : [assistant(seed), user(10 + seed)]));
          known(await same(messages), 0.85);
        }
        known(await same(messages), 0.99);
        if (name === 'tools') messages.push(assistant(6), user(21));
        else messages.splice(-1, 1, user(20));
        known(await same(messages), 0.85);
        known(await same([long, user(30)]), 0.9, await tokensOf(server, [long], fields));
        if (what === 'from disk' && model !== 'recurrent') { // whose states are so small that memory has all
          assert.ok((await server.metrics()).value('chasqui_disk_read_seconds_count') > 0, 'nothing was read');
        }
        t.diagnostic(`cached: turns ${shares.slice(0, 3)}, again ${shares[3]}, edited ${shares[4]}, another chat ${shares[5]}`);
      });
    }
  }
}

describe('checkpoints', () => {
  it('survive a restart on disk', async (t) => {
    const dir = await folder(t);
    const flags = [...modelFlags('hybrid'), ...await withTemplate(dir, 'thinking'), '--cache-disk', path.join(dir, 'cache')];
    const first = await start(t, flags);
    const before = await chat(first, [system, user(2)]);
    await first.stop();
    const second = await start(t, flags);
    const after = await chat(second, [system, user(2), assistant(3), user(13)]);
    assert.ok(after.cached >= before.prompt - margin, `${after.cached} of ${before.prompt}`);
  });

  it('are waited for by those who begin alike at the same time', async (t) => {
    const flags = [...modelFlags('recurrent'), ...await withTemplate(await folder(t), 'plain')];
    const server = await start(t, flags);
    const shared = await tokensOf(server, [system]);
    const chats = await Promise.all([2, 3, 4].map((seed) => chat(server, [system, user(seed)])));
    const cached = chats.map((one) => one.cached).sort((a, b) => a - b);
    assert.equal(cached[0], 0);
    assert.ok(cached[1] >= 0.9 * shared, `${cached} of ${shared}`);
  });

  it('of a long text are in its middle, as far apart as told', async (t) => {
    const server = await start(t, [...modelFlags('hybrid'), '--checkpoint-every', '100']);
    const complete = async (prompt) =>
      (await ask(server, '/v1/completions', { prompt, max_tokens: 2 })).usage.prompt_tokens_details.cached_tokens;
    await complete(`${words(300, 1)} one`);
    const cached = await complete(`${words(250, 1)} two ${words(40, 2)}`);
    assert.ok(cached >= 100 && cached % 100 === 0, `${cached}`);
  });

  it('can be turned off', async (t) => {
    const server = await start(t, [...modelFlags('hybrid'), '--checkpoint-every', '0']);
    await chat(server, [system, user(2)]);
    assert.equal((await chat(server, [system, user(2)])).cached, 0);
  });

  it('are refused with a distance that makes no sense', async () => {
    const { code, stderr } = await run(['serve', ...demo, '--checkpoint-every', '3']);
    assert.notEqual(code, 0);
    assert.match(stderr, /--checkpoint-every/);
  });
});
