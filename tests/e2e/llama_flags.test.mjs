// llama-server's flags that change what requests get: a server that was started with them, asked for nothing, answers
// as a plain one that is asked for it in the request; and what a request says wins.
import assert from 'node:assert/strict';
import * as test from 'node:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { ask, post, user } from './client.mjs';
import { demo, run, start, testModel } from './server.mjs';

const { describe, it } = test;

const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-llama-flags-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const file = (name, text) => {
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
};

const defaultsOf = async (server) => (await (await server.fetch('/props')).json()).default_generation_settings.params;

const thinking = file('thinking.jinja', `{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' and m.reasoning_content -%}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' -}}{%- endif -%}
{{- m.content + '<|im_end|>\\n' -}}{%- endfor -%}
{%- if note is defined -%}{{- '[' ~ note ~ ']' -}}{%- endif -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}{%- endif -%}`);

// A flag with its value, the setting of a request that it stands for, and what /props and a request call that.
const numbers = [
  ['--temp', 1.5, 'temperature'], ['--top-k', 7, 'top_k'], ['--top-p', 0.5, 'top_p'], ['--min-p', 0.2, 'min_p'],
  ['--top-nsigma', 1.25, 'top_n_sigma'], ['--xtc-probability', 0.5, 'xtc_probability'], ['--xtc-threshold', 0.25, 'xtc_threshold'],
  ['--typical', 0.75, 'typical_p'], ['--repeat-last-n', 32, 'repeat_last_n'], ['--repeat-penalty', 1.5, 'repeat_penalty'],
  ['--presence-penalty', 0.5, 'presence_penalty'], ['--frequency-penalty', 0.25, 'frequency_penalty'],
  ['--dry-multiplier', 0.5, 'dry_multiplier'], ['--dry-base', 2.5, 'dry_base'], ['--dry-allowed-length', 3, 'dry_allowed_length'],
  ['--dry-penalty-last-n', 48, 'dry_penalty_last_n'], ['--adaptive-target', 0.25, 'adaptive_target'],
  ['--adaptive-decay', 0.5, 'adaptive_decay'], ['--dynatemp-range', 0.5, 'dynatemp_range'], ['--dynatemp-exp', 1.5, 'dynatemp_exponent'],
  ['--mirostat-lr', 0.25, 'mirostat_eta'], ['--mirostat-ent', 4, 'mirostat_tau'], ['--seed', 11, 'seed'],
];

describe("llama-server's flags of sampling", async () => {
  const plain = await start(test, demo);
  const words = ['--dry-sequence-breaker', 'x\\n', '--samplers', 'top_k;temperature', '--logit-bias', '300-2.5', '-r', 'Chasqui', '--ignore-eos'];
  const flagged = await start(test, [...demo, ...numbers.flatMap(([flag, value]) => [flag, String(value)]), ...words]);
  const chat = (server, fields = {}) =>
    ask(server, '/v1/chat/completions', { messages: user('What is Chasqui?'), max_tokens: 40, ...fields });
  const textOf = (answer) => answer.choices[0].message.content;

  it('are the defaults that /props tells', async () => {
    const params = await defaultsOf(flagged);
    for (const [flag, value, name] of numbers) assert.equal(params[name], value, flag);
    assert.deepEqual(params.dry_sequence_breakers, ['x\n']);
    assert.deepEqual(params.samplers, ['top_k', 'temperature']);
    assert.deepEqual(params.logit_bias, [{ token: 300, bias: -2.5 }]);
    assert.deepEqual(params.stop, ['Chasqui']);
    assert.equal(params.ignore_eos, true);
  });

  it('give the answers that a request with these settings gets', async () => {
    const asked = { ...Object.fromEntries(numbers.map(([, value, name]) => [name, value])), dry_sequence_breakers: ['x\n'],
      samplers: ['top_k', 'temperature'], logit_bias: { 300: -2.5 }, stop: ['Chasqui'], ignore_eos: true };
    for (const stop of [['Chasqui'], ['zebra']]) {
      const want = await chat(plain, { ...asked, stop });
      const got = await chat(flagged, stop[0] === 'zebra' ? { stop } : {});
      assert.equal(textOf(got), textOf(want));
      assert.equal(got.choices[0].finish_reason, want.choices[0].finish_reason);
    }
    assert.notEqual(textOf(await chat(plain, { temperature: 0 })), textOf(await chat(flagged, { stop: ['zebra'] })));
  });

  it('give way to what a request says', async () => {
    const said = { temperature: 0, samplers: ['temperature'], repeat_penalty: 1, presence_penalty: 0, frequency_penalty: 0,
      dry_multiplier: 0, logit_bias: {}, stop: 'zebra', ignore_eos: false };
    assert.equal(textOf(await chat(flagged, said)), textOf(await chat(plain, said)));
  });

  it('are read from variables, which flags override', async () => {
    const server = await start(test, [...demo, '--top-k', '3'], { LLAMA_ARG_TOP_K: '9', LLAMA_ARG_TEMPERATURE: '0.25' });
    const params = await defaultsOf(server);
    assert.equal(params.top_k, 3);
    assert.equal(params.temperature, 0.25);
  });
});

describe("llama-server's flags of answers", async () => {
  it('--grammar holds for requests without one of their own', async () => {
    const server = await start(test, [...demo, '--grammar', 'root ::= "yes" | "no"']);
    const chat = async (fields) => (await ask(server, '/v1/chat/completions', { messages: user('Is it?'), max_tokens: 30, ...fields })).choices[0];
    assert.match((await chat({})).message.content, /^(yes|no)$/);
    assert.match((await ask(server, '/completion', { prompt: 'Is it?' })).content, /^(yes|no)$/);
    assert.match((await chat({ grammar: 'root ::= "maybe"' })).message.content, /^maybe$/);
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
    assert.equal((await chat({ tools, tool_choice: 'required' })).message.tool_calls[0].function.name, 'look');
  });

  it('--grammar-file and --json-schema do the same', async () => {
    const grammar = await start(test, [...demo, '--grammar-file', file('a.gbnf', 'root ::= "aa"')]);
    assert.equal((await ask(grammar, '/completion', { prompt: 'x' })).content, 'aa');
    const schema = await start(test, [...demo, '-j', '{"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"],"additionalProperties":false}']);
    assert.ok([1, 2].includes(JSON.parse((await ask(schema, '/completion', { prompt: 'x' })).content).a));
  });

  it('--special shows control tokens', async () => {
    const server = await start(test, [...demo, '--special']);
    const { content } = await ask(server, '/completion', { prompt: 'x', n_predict: 2, grammar: 'root ::= "a"', temperature: 0 });
    assert.match(content, /^a<\|\w+\|>$/);
  });
});

describe("llama-server's flags of chats", async () => {
  const prompt = async (server, fields = {}) => (await ask(server, '/apply-template', { messages: user('x'), ...fields })).prompt;
  const think = async (server, fields = {}) => {
    const body = { messages: user('What is Chasqui?'), temperature: 0, max_tokens: 40, ignore_eos: true, ...fields };
    return (await ask(server, '/v1/chat/completions', body)).choices[0].message;
  };
  const started = (...flags) => start(test, [...demo, '--chat-template-file', thinking, ...flags]);

  it('--reasoning says whether to think, and requests win', async () => {
    const server = await started('--reasoning', 'off');
    assert.match(await prompt(server), /<\/think>\n\n$/);
    assert.match(await prompt(server, { chat_template_kwargs: { enable_thinking: true } }), /<think>\n$/);
    assert.match(await prompt(await started('--reasoning', 'on')), /<think>\n$/);
  });

  it('--reasoning-budget and its message end the reasoning', async () => {
    const server = await started('--reasoning-budget', '4', '--reasoning-budget-message', ' Enough.');
    const plain = await started();
    const want = await think(plain, { reasoning_budget: 4, reasoning_budget_message: ' Enough.' });
    assert.match(want.reasoning_content, / Enough\.\s*$/);
    assert.deepEqual(await think(server), want);
    const anthropic = await ask(server, '/v1/messages', { model: 'x', max_tokens: 40, temperature: 0, messages: user('What is Chasqui?') });
    assert.match(anthropic.content[0].thinking, / Enough\.\s*$/);
  });

  it('--reasoning-format none leaves the reasoning in the content', async () => {
    const server = await started('--reasoning-format', 'none');
    assert.equal((await think(server)).reasoning_content, undefined);
    assert.ok((await think(server, { reasoning_format: 'auto' })).reasoning_content.length > 0);
  });

  it('--chat-template-kwargs reach the template, one by one', async () => {
    const server = await started('--chat-template-kwargs', '{"note":"kept","other":1}');
    assert.match(await prompt(server), /\[kept\]/);
    assert.match(await prompt(server, { chat_template_kwargs: { other: 2 } }), /\[kept\]/);
    assert.match(await prompt(server, { chat_template_kwargs: { note: 'mine' } }), /\[mine\]/);
  });

  it('--no-prefill-assistant begins a new answer', async () => {
    const messages = [...user('x'), { role: 'assistant', content: 'It is' }];
    assert.match(await prompt(await started(), { messages }), /It is$/);
    const server = await started('--no-prefill-assistant');
    assert.match(await prompt(server, { messages }), /<think>\n$/);
    assert.match(await prompt(server, { messages, continue_final_message: true }), /It is$/);
  });

  it('--skip-chat-parsing leaves answers as they are', async () => {
    const server = await started('--skip-chat-parsing');
    const message = await think(server);
    assert.equal(message.reasoning_content, undefined);
    assert.ok(message.content.length > 0);
  });

  it('--chat-template is a template', async () => {
    const server = await start(test, [...demo, '--chat-template', '{{ messages[0].content }}!']);
    assert.equal(await prompt(server), 'x!');
    assert.match(await prompt(await start(test, [...demo, '--chat-template', 'chatml'])), /<\|im_start\|>user\nx<\|im_end\|>/);
  });
});

describe("llama-server's flags of models and contexts", async () => {
  const greedy = async (server) => (await ask(server, '/completion', { prompt: 'What is Chasqui?', n_predict: 40, temperature: 0, ignore_eos: true })).content;
  const plain = await start(test, demo);
  const want = await greedy(plain);

  for (const flags of [['-ot', '.*=CPU', '--no-repack', '--no-host', '--check-tensors'], ['--load-mode', 'none', '--numa', 'distribute'],
    ['--cpu-mask', '1', '--cpu-strict', '1', '--prio', '-1'], ['--split-mode', 'none', '--main-gpu', '0', '-cmoe', '-nkvo']]) {
    it(`${flags.join(' ')} change no answer`, async () => {
      assert.equal(await greedy(await start(test, [...demo, ...flags])), want);
    });
  }

  it('--rope-freq-scale changes what positions mean, and how many there may be', async () => {
    const server = await start(test, [...demo, '--rope-scaling', 'linear', '--rope-scale', '4']);
    const trained = async (of) => (await (await of.fetch('/v1/models')).json()).data[0].meta.n_ctx_train;
    assert.equal(await trained(server), 4 * (await trained(plain)));
    assert.notEqual(await greedy(server), want);
  });

  it('--override-kv changes what the file says', async () => {
    const length = async (server) => (await ask(server, '/tokenize', { content: 'x', add_special: true })).tokens.length;
    const server = await start(test, [...demo, '--override-kv', 'tokenizer.ggml.add_bos_token=bool:true,general.name=str:other']);
    assert.ok((await length(server)) >= (await length(plain)));
    assert.equal((await (await server.fetch('/v1/models')).json()).data[0].id, 'other');
  });

  it('every format of the KV cache answers, also from what was cached', async () => {
    const server = await start(test, [...demo, '-ctk', 'q4_0', '-ctv', 'iq4_nl', '-fa', 'on']);
    const first = await greedy(server);
    const again = await ask(server, '/completion', { prompt: 'What is Chasqui?', n_predict: 40, temperature: 0, ignore_eos: true });
    assert.equal(again.content, first);
    assert.ok(again.timings.cache_n > 0);
  });
});

describe('--context-shift', async () => {
  const size = ['-c', '512', '-np', '1'];
  const long = { prompt: 'What is Chasqui?', n_predict: 900, temperature: 0, ignore_eos: true };
  const plain = await start(test, [...demo, ...size]);
  const shifting = await start(test, [...demo, ...size, '--context-shift', '--keep', '4']);

  it('lets an answer go on where its context is full', async () => {
    const ends = await ask(plain, '/completion', long);
    assert.deepEqual([ends.truncated, ends.stop_type], [true, 'limit']);
    assert.equal(ends.tokens_predicted, 512 - ends.tokens_evaluated);
    const goes = await ask(shifting, '/completion', long);
    assert.deepEqual([goes.truncated, goes.tokens_predicted], [true, 900]);
    assert.equal(goes.content.slice(0, ends.content.length), ends.content, 'up to there it is the same');
    assert.equal((await ask(shifting, '/completion', { ...long, n_predict: 20 })).truncated, false);
  });

  it('leaves nothing in the cache that another request would begin with', async () => {
    const first = (await ask(plain, '/completion', { ...long, n_predict: 8, cache_prompt: false })).content;
    await ask(shifting, '/completion', long);
    const again = await ask(shifting, '/completion', { ...long, n_predict: 8 });
    assert.equal(again.content, first);
    assert.ok(again.timings.cache_n <= 5, `${again.timings.cache_n}`);
  });

  it('does not make room for a prompt', async () => {
    const response = await post(shifting, '/completion', { prompt: 'word '.repeat(600), n_predict: 1 });
    assert.deepEqual([response.status, (await response.json()).error.type], [400, 'exceed_context_size_error']);
  });

  it('leaves sessions what their models have seen and said', async () => {
    const { id } = await ask(shifting, '/v1/sessions', {});
    await ask(shifting, `/v1/sessions/${id}/append`, { message: user('What is Chasqui?')[0] });
    const said = await ask(shifting, `/v1/sessions/${id}/generate`, { max_tokens: 900, temperature: 0, ignore_eos: true });
    assert.equal(said.usage.total_tokens, 512);
  });

  it('is for all workers, and shifts no other answer', async (t) => {
    const server = await start(t, [...demo, '--workers', '2', '-c', '1024', '-np', '2', '--context-shift']);
    const prompt = (number) => `Runner ${number} carries knots. What is Chasqui?`;
    const repeatable = { prompt: prompt(9), n_predict: 40, deterministic: true };
    const alone = await ask(server, '/completion', repeatable);
    const all = await Promise.all([1, 2, 9, 3].map((number) => ask(server, '/completion',
      number === 9 ? repeatable : { prompt: prompt(number), n_predict: 700, temperature: 0, ignore_eos: true })));
    assert.deepEqual(all.map(({ truncated }) => truncated), [true, true, false, true]);
    assert.equal(all[2].content, alone.content);
  });

  it('keeps to a grammar, and tells how likely each token was', async () => {
    const body = { prompt: 'Names:', n_predict: 700, temperature: 0, n_probs: 1, grammar: 'root ::= (" " [a-z]+ ",")*', ignore_eos: true };
    const said = await ask(shifting, '/completion', body);
    assert.match(said.content, /^( [a-z]+,)*( [a-z]*)?$/);
    assert.deepEqual([said.truncated, said.tokens_predicted, said.completion_probabilities.length], [true, 700, 700]);
  });

  it('says for which model it has no effect', async (t) => {
    const server = await start(t, ['-m', testModel('recurrent'), '-c', '512', '-np', '1', '--context-shift', '--cache-reuse', '64']);
    await server.says(/--context-shift has no effect/);
    await server.says(/--cache-reuse has no effect/);
    assert.equal((await (await server.fetch('/props')).json()).kv.shifts, false);
    const ends = await ask(server, '/completion', { prompt: 'What is Chasqui?', n_predict: 900, temperature: 0, ignore_eos: true });
    assert.deepEqual([ends.truncated, ends.tokens_evaluated + ends.tokens_predicted], [true, 512]);
  });

  it('ends repeatable answers there', async () => {
    const ends = await ask(shifting, '/completion', { ...long, deterministic: true });
    assert.ok(ends.truncated && ends.tokens_predicted < 512, `${ends.tokens_predicted}`);
  });
});

describe("llama-server's flags", () => {
  const wrong = [
    [['--top-k', 'many'], /--top-k: a number was expected; got many/], [['--temp'], /--temp: a value is missing/],
    [['--grammar', 'root ::= x'], /--grammar: .*x/], [['--reasoning', 'maybe'], /--reasoning: .*maybe/],
    [['--chat-template-kwargs', '{'], /--chat-template-kwargs: /], [['--chat-template', 'llama3'], /--chat-template: .*chatml/],
    [['--grammar-file', '/nowhere.gbnf'], /--grammar-file: .*\/nowhere\.gbnf/], [['--override-kv', 'x'], /--override-kv: /],
    [['--logit-bias', 'x'], /--logit-bias: /], [['--control-vector', '/nowhere.gguf'], /--control-vector names \/nowhere\.gguf/],
    [['--rope-scale', '-1'], /--rope-scale/], [['--cpu-mask', '0'], /--cpu-mask/], [['-ot', '(=CPU'], /--override-tensor/],
    [['-ctk', 'q3_0'], /--cache-type-k/], [['--numa', 'x'], /--numa: /],
  ];
  for (const [flags, words] of wrong) {
    it(`${flags.join(' ')} is refused before anything is loaded`, async () => {
      const { code, stderr } = await run(['serve', '--port', '0', ...flags]);
      assert.equal(code, 2);
      assert.match(stderr, words);
    });
  }

  it('the variable that is wrong is named', async () => {
    const { code, stderr } = await run(['serve', '--port', '0'], { LLAMA_ARG_TOP_K: 'many' });
    assert.equal(code, 2);
    assert.match(stderr, /LLAMA_ARG_TOP_K: a number was expected; got many/);
  });
});
