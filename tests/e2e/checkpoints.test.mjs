// Models whose memory cannot be cut (a sliding window, a state, or both) keep checkpoints of a prompt: a chat goes on, is
// answered again, is edited, or begins like another one, and only what is new is computed.
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
const templates = {
  plain: `${said('message.content')}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`,
  // Drops the reasoning of earlier turns, and begins the answer with some.
  thinking: `${said("message.content.split('</think>')[-1]")}` +
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}",
};
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

async function chat(server, messages) {
  const { text, usage } = await answer(server, messages, { max_tokens: 8 });
  return { text, prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens };
}

const tokensOf = async (server, messages) => {
  const { prompt } = await ask(server, '/apply-template', { messages, add_generation_prompt: false });
  return (await ask(server, '/tokenize', { content: prompt, parse_special: true })).tokens.length;
};

for (const model of ['swa', 'hybrid', 'recurrent']) {
  for (const name of Object.keys(templates)) {
    describe(`chats with random-${model} and a ${name} template`, () => {
      it('compute only what is new', async (t) => {
        const flags = [...modelFlags(model), ...await withTemplate(await folder(t), name)];
        const server = await start(t, flags);
        const bare = await start(t, [...flags, '--cache-ram', '0']);
        const same = async (messages) => {
          const one = await chat(server, messages);
          assert.equal(one.text, (await chat(bare, messages)).text, 'the answer is the same as without a cache');
          return one;
        };
        const messages = [system, user(2)];
        let before = await same(messages);
        assert.equal(before.cached, 0);
        for (const seed of [3, 4]) {
          messages.push(assistant(seed), user(10 + seed));
          const turn = await same(messages);
          assert.ok(turn.cached >= before.prompt - margin, `turn: ${turn.cached} of the ${before.prompt} of the last one`);
          before = turn;
        }
        const again = await same(messages);
        assert.ok(again.cached >= before.prompt - margin, `again: ${again.cached} of ${before.prompt}`);
        const edited = await same([...messages.slice(0, -1), user(20)]);
        const kept = await tokensOf(server, messages.slice(0, -1));
        assert.ok(edited.cached >= kept - margin, `edited: ${edited.cached} of ${kept}`);
        const other = await same([system, user(30)]);
        const shared = await tokensOf(server, [system]);
        assert.ok(other.cached >= 0.9 * shared, `another chat: ${other.cached} of ${shared}`);
      });
    });
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
