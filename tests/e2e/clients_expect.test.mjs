// What clients of llama-server, OpenAI, Anthropic and Ollama send and look for beyond the documented fields: agents,
// SDKs and their older versions. Each body here was sent by one of them.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, post, refused, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const chat = '/v1/chat/completions';
const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } };
const small = { max_tokens: 2, temperature: 0 };

describe('a client finds what it expects', async () => {
  const server = await start(test, sim);

  it('when it sends text in parts', async () => {
    const parts = ['One', 'Two'].map((text) => ({ type: 'text', text }));
    const rendered = async (content) => (await ask(server, '/apply-template', { messages: user(content) })).prompt;
    assert.equal(await rendered(parts), await rendered('One\nTwo'));
  });

  it('when a stamp in its system prompt differs in each request', async () => {
    const cached = async (stamp) => {
      const billing = `x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=${stamp};`;
      const system = [{ type: 'text', text: `${billing}You are Claude Code. ${'Be brief and exact. '.repeat(20)}` }];
      const { usage } = await ask(server, '/v1/messages', { system, messages: user('Hello'), ...small });
      return [usage.cache_read_input_tokens, usage.input_tokens + usage.cache_read_input_tokens];
    };
    await cached('a5145');
    const [known, all] = await cached('07f3b');
    assert.equal(known, all - 1, 'the stamp is nothing to the model');
  });

  it('when it sends tools that only its provider has', async () => {
    const warning = async (path, body, names) => {
      const response = await post(server, path, { ...small, ...body });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.equal(response.headers.get('x-chasqui-warning'),
        names && `skipped tools of types that this server does not have: ${names}`, path);
    };
    const codex = [{ type: 'namespace', name: 'x', tools: [] }, { type: 'web_search' }, { type: 'custom', name: 'apply_patch' },
      { type: 'local_shell' }, { type: 'function', name: 'shell', parameters: { type: 'object', properties: {} } }];
    await warning('/v1/responses', { input: 'say: x', tools: codex, max_output_tokens: 2 },
      'namespace, web_search, custom, local_shell');
    await warning(chat, { messages: user('say: x'), tools: [{ type: 'web\n search' }, weather] }, 'web??search');
    await warning(chat, { messages: user('say: x'), tools: [{ type: 'web_search' }], stream: true,
      tool_choice: 'required' }, 'web_search');
    await warning('/v1/messages', { messages: user('say: x'), tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      'web_search_20250305');
    await warning(chat, { messages: user('say: x'), tools: [weather] }, null);
  });

  it('when a tool of it takes half a million characters', async () => {
    const model = await start(test, demo);
    const parameters = { type: 'object', required: ['script'], properties: { script: { type: 'string', maxLength: 524_288 },
      lines: { type: 'array', items: { type: 'string' }, maxItems: 100_000 } } };
    const tool = { name: 'Workflow', description: 'Runs a script.', input_schema: parameters };
    const message = await ask(model, '/v1/messages', { max_tokens: 400, messages: user('Run it.'), tools: [tool], tool_choice: { type: 'any' } });
    assert.ok(message.content.some(({ type }) => type === 'tool_use') || message.stop_reason === 'max_tokens', JSON.stringify(message));
    const chat = { messages: user('Run it.'), max_tokens: 8, tools: [{ type: 'function', function: { name: 'Workflow', parameters } }] };
    assert.equal((await ask(model, '/v1/chat/completions', { ...chat, tool_choice: 'required' })).choices.length, 1);
  });

  it('when its conversation has become too long', async () => {
    const messages = user('x'.repeat(5000));
    const error = await refused(await post(server, chat, { messages }), 400);
    assert.deepEqual([error.type, error.code], ['exceed_context_size_error', 'context_length_exceeded']);
    assert.match(error.message, /exceeds the available context size \(4096 tokens\).* maximum context length is 4096 tokens/);
    assert.equal(error.n_ctx, 4096);
    assert.ok(error.n_prompt_tokens >= 4096);
    const own = await refused(await post(server, '/completion', { prompt: messages[0].content }), 400);
    assert.deepEqual([own.type, own.code, own.n_ctx], ['exceed_context_size_error', 400, 4096]);
    const response = await post(server, '/v1/messages', { messages, max_tokens: 1 });
    const { error: { type, message } } = await response.json();
    assert.deepEqual([response.status, type], [400, 'invalid_request_error']);
    const [, asked, most] = /^prompt is too long: (\d+) tokens > (\d+) maximum$/.exec(message);
    assert.ok(Number(asked) > Number(most));
    const ollama = await (await post(server, '/api/chat', { messages })).json();
    assert.match(ollama.error, /exceeds the available context size/);
  });

  it('when it sends what llama-server takes', async () => {
    const turns = [
      { role: 'developer', content: 'a' }, { role: 'critic', content: 'b' }, { role: 'user', content: 'c' },
      { role: 'assistant', content: null }, { role: 'user', content: null }, { role: 'user', content: 'd' },
      { role: 'assistant', content: null, tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '' } }] },
      { role: 'function', name: 'f', content: 'e' }, { role: 'user', content: 'say: x' },
    ];
    for (const body of [
      { messages: turns }, { stop: '' }, { stop: [...Array(63).keys()].map(String).concat('') }, { stop: ['x'.repeat(2000)] },
      { priority: 0 }, { priority: -3 }, { priority: 7 }, { service_tier: 'scale' }, { reasoning_effort: 'default' },
      { tool_choice: 'required' }, { tools: [], tool_choice: 'required' },
      { functions: [weather.function], function_call: 'auto' },
    ]) {
      await ask(server, chat, { messages: user('say: x'), ...small, ...body });
    }
    for (const body of [{ truncation: 'auto' }, { background: true }]) {
      const response = await ask(server, '/v1/responses', { input: 'say: x', max_output_tokens: 2, ...body });
      assert.equal(response.background, false);
    }
    await ask(server, '/v1/messages', { messages: user('say: x'), max_tokens: 2, tool_choice: { type: 'any' } });
  });

  it('when it looks for a model', async () => {
    const { data: [model] } = await (await server.fetch('/v1/models')).json();
    const one = await server.fetch(`/v1/models/${encodeURIComponent(model.id)}`);
    assert.deepEqual(await one.json(), model);
    await refused(await server.fetch('/v1/models/another%2Fone'), 404);
    assert.equal((await server.fetch('/v1/models', { method: 'HEAD' })).status, 200);
    assert.match((await (await server.fetch('/version')).json()).version, /\d/);
  });

  it('when it names its requests, or does not', async () => {
    const id = async (headers) => (await post(server, chat, { messages: user('say: x') }, { headers })).headers.get('x-request-id');
    assert.equal(await id({ 'X-Request-Id': 'mine-1' }), 'mine-1');
    const made = [await id({}), await id({ 'X-Request-Id': 'x'.repeat(200) }), await id({ 'X-Request-Id': 'a b' })];
    for (const each of made) assert.match(each, /^req_\w{32}$/);
    assert.equal(new Set(made).size, 3);
    assert.match((await server.fetch('/nowhere')).headers.get('x-request-id'), /^req_/);
    await server.says(/request_id=mine-1/);
  });

  it('when it takes this for Ollama', async () => {
    const { models: [{ digest, modified_at: modified }] } = await (await server.fetch('/api/tags')).json();
    assert.match(digest, /^[0-9a-f]{64}$/);
    const { models: [running] } = await (await server.fetch('/api/ps')).json();
    assert.equal(running.digest, digest);
    assert.ok(Date.parse(modified) <= Date.now());
    for (const [path, method, status] of [['/api/pull', 'POST', 404], ['/api/tags', 'POST', 405], ['/api/x/y', 'GET', 404]]) {
      const response = await server.fetch(path, { method });
      assert.equal(response.status, status);
      const body = await response.json();
      assert.deepEqual(Object.keys(body), ['error']);
      assert.equal(typeof body.error, 'string');
    }
    assert.equal((await ask(server, '/api/chat', { messages: [] })).load_duration, 0);
  });
});

describe('tools together with a schema', async () => {
  const server = await start(test, [...demo, '-np', '2']);
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false };
  const format = { type: 'json_schema', json_schema: { name: 'x', schema } };
  const body = { messages: user('How is the weather in Lima?'), temperature: 0, max_tokens: 100, tools: [weather] };

  it('give a call, or an answer that keeps to the schema', async () => {
    for (const more of [{}, { tool_choice: 'none' }, { seed: 3, temperature: 1 }]) {
      const { choices: [{ message }] } = await ask(server, chat, { ...body, ...more, response_format: format });
      if (message.tool_calls) assert.equal(message.tool_calls[0].function.name, 'weather');
      else assert.equal(typeof JSON.parse(message.content).ok, 'boolean', message.content);
      if (more.tool_choice === 'none') assert.equal(message.tool_calls, undefined);
    }
  });

  it('give a call where one is required', async () => {
    const { choices: [{ message }] } = await ask(server, chat, { ...body, response_format: format, tool_choice: 'required' });
    assert.equal(message.tool_calls[0].function.name, 'weather');
  });

  it('are taken by Responses, too', async () => {
    const { type, function: { name, parameters } } = weather;
    const { output } = await ask(server, '/v1/responses', {
      input: 'How is the weather in Lima?', temperature: 0, max_output_tokens: 100, tools: [{ type, name, parameters }],
      text: { format: { type: 'json_schema', name: 'x', schema } },
    });
    const said = output.find((item) => item.type === 'message');
    if (said) JSON.parse(said.content[0].text);
    else assert.equal(output.at(-1).type, 'function_call');
  });
});
