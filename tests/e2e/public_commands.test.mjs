// Command lines of llama-server as its README, guides and issues have them: the server starts with each and does what it
// says. Models and folders have other names, and ports are any free one; `--no-auth` stands where the line opens a public
// address without a key, which this server asks for (docs/compatibility.md). What the lines leave to the model, such as a
// context of 128,000 tokens, is kept.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, user } from './client.mjs';
import { Server, hangAfter } from './server.mjs';

const { describe, it } = test;

const models = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo');
const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-public-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
writeFileSync(path.join(folder, 't.jinja'), '{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}');
writeFileSync(path.join(folder, 'json.gbnf'), 'root ::= "{" [a-z]+ "}"');

const names = { 'M.gguf': `${models}/chasqui-demo.gguf`, 'DRAFT.gguf': `${models}/chasqui-draft.gguf`, 'EMBED.gguf': `${models}/chasqui-embed.gguf`,
  'RERANK.gguf': `${models}/chasqui-rerank.gguf`, DIR: folder };

function wordsOf(line) {
  const words = line.match(/'[^']*'|\S+/g).map((word) => (word.startsWith("'") ? word.slice(1, -1) : word));
  return words.map((word) => Object.entries(names).reduce((text, [name, real]) => text.replaceAll(name, real), word));
}

const json = async (server, route) => (await server.fetch(route, { headers: server.key ? { authorization: `Bearer ${server.key}` } : {} })).json();
const props = (server) => json(server, '/props');
const params = async (server) => (await props(server)).default_generation_settings.params;
const chat = (server, fields = {}) => ask(server, '/v1/chat/completions', { messages: user('What is Chasqui?'), max_tokens: 8, ...fields },
  server.key ? { headers: { authorization: `Bearer ${server.key}` } } : {});

// What is to be seen of a line.
const context = (cells, slots) => async (server) => {
  const { default_generation_settings: { n_ctx: each }, total_slots: all } = await props(server);
  if (slots) assert.equal(all, slots);
  if (cells) assert.ok(Math.abs(each * all - cells) < 256 * all, `${each} × ${all}`);
};
const settings = (want) => async (server) => {
  const got = await params(server);
  for (const [name, value] of Object.entries(want)) assert.equal(Math.fround(got[name]), Math.fround(value), name);
};
const called = (name) => async (server) => assert.equal((await json(server, '/v1/models')).data[0].id, name);
const key = (secret) => async (server) => {
  assert.equal((await server.fetch('/props')).status, 401);
  server.key = secret;
  await props(server);
};
const page = (status) => async (server) => assert.equal((await server.fetch('/')).status, status);
const slots = (status) => async (server) => assert.equal((await server.fetch('/slots')).status, status);
const embeds = async (server) => assert.ok((await ask(server, '/v1/embeddings', { input: 'x' })).data[0].embedding.length > 8);
const ranks = async (server) => assert.equal((await ask(server, '/v1/rerank', { query: 'x', documents: ['a', 'b'] })).results.length, 2);
const drafts = (drafter) => async (server) => assert.equal((await props(server)).speculation.drafter, drafter);
const metrics = async (server) => assert.match((await server.metrics()).text, /llamacpp:prompt_tokens_total/);
const template = (pattern, fields = {}) => async (server) =>
  assert.match((await ask(server, '/apply-template', { messages: user('x'), ...fields })).prompt, pattern);
const answers = (pattern) => async (server) => assert.match((await ask(server, '/completion', { prompt: 'x', n_predict: 40 })).content, pattern);
const deterministic = async (server) => {
  const [one, two] = [await chat(server, { temperature: 1 }), await chat(server, { temperature: 1 })];
  assert.equal(one.choices[0].message.content, two.choices[0].message.content);
};

const lines = [
  ['-m M.gguf'],
  ['-m M.gguf -c 2048', context(2048)],
  ['-m M.gguf --port 8080', props],
  ['-m M.gguf --host 0.0.0.0 --port 9090 -c 4096 --no-auth', context(4096)],
  ['-m M.gguf -c 16384 -np 4', context(16_384, 4)],
  ['-m M.gguf --ctx-size 8192 --parallel 2 --cont-batching', context(8192, 2)],
  ['--model M.gguf --host 0.0.0.0 --port 8012 --api-key your-secret-key', key('your-secret-key')],
  ['-m M.gguf --port 8080 --n-gpu-layers 1000'],
  ['--model M.gguf --ctx-size 256 --parallel 1 --threads 1 --port 11434', context(256, 1)],
  ['-m M.gguf -c 512 -np 1 --host 127.0.0.1 --port 8080 --n-predict 20 -ngl 99', async (server) =>
    assert.ok((await ask(server, '/completion', { prompt: 'x', ignore_eos: true })).tokens_predicted === 20)],
  ['-fa on --host 0.0.0.0 -a default_model --port 8087 -m M.gguf --no-mmap --jinja -c 128000 -b 1024 --no-auth', called('default_model'), context(128_000)],
  ['-m M.gguf -ngl 99 -c 32768 --ubatch-size 128', context(32_768)],
  ['-m M.gguf -md DRAFT.gguf -c 10000 --spec-draft-n-max 8', drafts('draft')],
  ['-m M.gguf -md DRAFT.gguf --draft-max 16 --draft-min 5 --draft-p-min 0.9 -ngld 99 -fa on -ctkd q8_0 -ctvd q8_0', drafts('draft')],
  ['-m M.gguf --alias step --fit on --prio 0 --temp 1.0 --top-p 0.95 --ctx-size 65536 --host 127.0.0.1 --port 8001 --jinja --cache-prompt ' +
    '--batch-size 30720 --threads 2 --threads-batch 2 --flash-attn auto --parallel 1 --cache-ram -1 --chat-template-file DIR/t.jinja',
  called('step'), settings({ temperature: 1, top_p: 0.95 }), context(65_536, 1), template(/^\[user\] x\[assistant\] $/)],
  ['-m M.gguf --port 8090 --ctx-size 262144 --flash-attn on --no-mmap --temp 1 --top-p 0.95 --top-k 40 --min-p 0.01 --presence-penalty 0.5 ' +
    '--repeat-penalty 1.1 --frequency-penalty 0.25 --batch-size 2048 --ubatch-size 2048 --parallel 4 --cache-ram -1 --cache-type-k f16 ' +
    '--cache-type-v f16 --threads -1 --seed -1 -dio --no-webui --metrics',
  settings({ temperature: 1, top_p: 0.95, top_k: 40, min_p: 0.01, presence_penalty: 0.5, repeat_penalty: 1.1, frequency_penalty: 0.25 }),
  context(262_144, 4), page(404), metrics],
  ["-m M.gguf -c 32768 -t 2 -fa on --prio-batch 0 -ub 2048 -b 2048 -ctk q8_0 -ctv q8_0 -ngl 999 -ot 'blk.1\\.ffn_.*_exps\\.=CPU,blk.2\\.ffn_.*_exps\\.=CPU' " +
    '--cpu-moe --no-context-shift --no-mmap', context(32_768)],
  ["--model M.gguf --threads -1 --n-gpu-layers 99 -ot '.ffn_.*_exps.=CPU' --ctx-size 16384 --temp 0.7 --min-p 0.0 --top-p 0.8 --top-k 20 --repeat-penalty 1.05",
    settings({ temperature: 0.7, min_p: 0, top_p: 0.8, top_k: 20, repeat_penalty: 1.05 })],
  ['-m M.gguf -ngl all -c 0 -fa on --jinja --reasoning-format none -ncmoe 28 -ub 4096 -b 4096'],
  ["-m M.gguf --chat-template-kwargs '{\"reasoning_effort\":\"high\"}' -np 1 -a glimmer --jinja", called('glimmer'), context(0, 1)],
  ['-m M.gguf -fa on -nkvo -c 163840 -ngl 0 -np 4 -a r1:671b -s 3047 -t 2 --temp 0.6', settings({ seed: 3047, temperature: 0.6 }), called('r1:671b'), deterministic],
  ['-m M.gguf -c 8192 -cb -np 8 --slots --log-disable -v', context(8192, 8), slots(200)],
  ['-m M.gguf --ctx-size 65536 -kvu --cache-reuse 256 --swa-full -sm layer -mg 0', async (server) => assert.equal((await props(server)).kv.layout, 'unified')],
  ['-m M.gguf --numa distribute -t 2 --no-warmup --threads-http 8 --timeout 600'],
  ['-m M.gguf --port=8033 --ctx-size=8192 --n-gpu-layers=99 --no-slots --verbosity 4', context(8192), slots(501)],
  ['-m M.gguf --host DIR/llm.sock --reasoning-budget 0 --no-prefill-assistant'],
  ['-m M.gguf --log-file DIR/server.log --log-timestamps --log-prefix --keep -1', () => assert.ok(existsSync(`${folder}/server.log`))],
  ['-m M.gguf -ctk q4_0 -ctv q4_0 -fa on'],
  ['-m EMBED.gguf --embeddings --pooling mean -ub 8192', embeds],
  ['-m M.gguf --embedding --pooling mean -c 2048', embeds],
  ['-m RERANK.gguf --reranking --host 127.0.0.1', ranks],
  ['-m M.gguf --sleep-idle-seconds 600 --no-ui', page(404)],
  ['-m M.gguf -c 16384 -np 1 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768', context(16_384, 1)],
  ['-m M.gguf --slot-save-path DIR --slots -np 2', async (server) => {
    await ask(server, '/completion', { prompt: 'A long enough prompt that is worth keeping, and then some more of it.', n_predict: 4, id_slot: 0 });
    assert.equal((await ask(server, '/slots/0?action=save', { filename: 'a.bin' })).filename, 'a.bin');
  }],
  ['-m M.gguf --grammar-file DIR/json.gbnf', answers(/^\{[a-z]+\}?$/)],
  ["-m M.gguf -j '{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"],\"additionalProperties\":false}'", answers(/^\{\s*"a"\s*:\s*1\s*\}$/)],
  ['-m M.gguf --chat-template chatml', template(/^<\|im_start\|>user\nx<\|im_end\|>\n<\|im_start\|>assistant\n$/)],
  ['-m M.gguf --api-prefix /llm --cors-origins https://a.example,localhost --no-cors-credentials', async (server) =>
    assert.equal((await server.fetch('/llm/health')).status, 200)],
  ['-m M.gguf --override-kv tokenizer.ggml.add_bos_token=bool:false --spec-type ngram-simple', drafts('ngram')],
  ['-m M.gguf --host 127.0.0.1 --port 8080 -lv 3 --log-colors off --no-perf --metrics --props', metrics],
];

function overSocket(socketPath, route) {
  return new Promise((resolve, reject) => {
    const request = http.get({ socketPath, path: route, timeout: hangAfter }, (response) => response.resume().on('end', () => resolve(response.statusCode)));
    request.on('error', reject);
  });
}

describe('public command lines of llama-server', () => {
  assert.ok(lines.length >= 38);
  for (const [line, ...checks] of lines) {
    it(line.replaceAll('M.gguf', 'm.gguf'), async (t) => {
      const words = wordsOf(line);
      const port = words.findIndex((word) => word.startsWith('--port'));
      if (port >= 0) words.splice(port, words[port].includes('=') ? 1 : 2);
      const server = new Server([...words, '--port', '0'], {});
      t.after(() => server.stop());
      await server.listening();
      if (!server.url) return assert.equal(await overSocket(`${folder}/llm.sock`, '/health'), 200);
      server.url = server.url.replace('0.0.0.0', '127.0.0.1');
      const prefix = words.includes('--api-prefix');
      for (const check of checks) await check(server);
      if (prefix) {
        server.url += '/llm';
      } else if (!checks.includes(embeds) && !checks.includes(ranks)) {
        assert.ok((await chat(server)).usage.completion_tokens > 0);
      }
      return undefined;
    });
  }
});
