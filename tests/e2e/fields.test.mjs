// Every field of the table of generation fields has its effect on every route that takes them (effects.mjs).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as test from 'node:test';

import { ask, post } from './client.mjs';
import { effects, refusals, shifting, without } from './effects.mjs';
import { withGaps } from './gguf.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

const question = 'What is Chasqui?';
const messages = (text) => [{ role: 'user', content: text }];
// The same words to the model as a chat's, so that answers are the same on all routes.
const prompt = (text) => `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`;
const ofChat = (body) => ({
  text: body.choices[0].message?.content ?? body.choices[0].text, finish: body.choices[0].finish_reason, ...ofUsage(body.usage),
  chances: body.choices[0].logprobs?.content?.map((one) => ({ own: Math.exp(one.logprob), others: one.top_logprobs.length }))
    ?? body.choices[0].logprobs?.tokens.map((_, i) => ({
      own: Math.exp(body.choices[0].logprobs.token_logprobs[i]), others: Object.keys(body.choices[0].logprobs.top_logprobs[i]).length,
    })),
});
const ofUsage = (usage) => ({ tokens: usage.completion_tokens, cached: usage.prompt_tokens_details.cached_tokens });

// route: [body, how its answer says text, finish, tokens and cached].
const chat = [(text) => ({ messages: messages(text) }), ofChat];
const completion = [(text) => ({ prompt: prompt(text) }), (body) => ({
  text: body.content, finish: body.stop_type === 'limit' ? 'length' : 'stop', tokens: body.tokens_predicted, cached: body.timings.cache_n,
  chances: body.completion_probabilities?.map((one) => ({
    own: one.prob ?? Math.exp(one.logprob), others: (one.top_probs ?? one.top_logprobs).length,
  })),
})];
const responses = [(text) => ({ input: text, store: false }), (body) => ({
  text: body.output.at(-1)?.content[0].text ?? '', finish: body.status === 'incomplete' ? 'length' : 'stop',
  tokens: body.usage.output_tokens, cached: body.usage.input_tokens_details.cached_tokens,
})];
const routes = {
  '/v1/chat/completions': chat,
  '/chat/completions': chat,
  '/v1/completions': [(text) => ({ prompt: prompt(text) }), ofChat],
  '/completion': completion,
  '/completions': completion,
  '/generate': [(text) => ({ prompt: prompt(text), stream: false }), (body) => ({ text: body.text, finish: body.finish_reason, ...ofUsage(body.usage) })],
  '/v1/messages': [(text) => ({ messages: messages(text), max_tokens: 2000 }), (body) => ({
    text: body.content[0]?.text ?? '', finish: body.stop_reason === 'max_tokens' ? 'length' : 'stop',
    tokens: body.usage.output_tokens, cached: body.usage.cache_read_input_tokens,
  })],
  '/v1/responses': responses,
  '/responses': responses,
  '/v1/sessions/{id}/generate': [() => ({ stream: false }), ofChat],
  '/infill': [(text) => ({ input_prefix: `user\n${text}`, input_suffix: 'assistant' }), completion[1]],
};

// These want a sound and a model that hears: transcriptions.test.mjs tries their fields.
const hearing = ['/v1/audio/transcriptions', '/audio/transcriptions'];

// Sent where a field changes nothing.
const values = { stream_options: { include_usage: true }, timings_per_token: true, return_cache: true, service_tier: 'auto', n_keep: 5, n_discard: 5, n_cache_reuse: 5 };

// Which members an event has, however deep.
const shape = (value) => (value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shape(one)])) : 0);

async function read(server, path, body) {
  if (!body.stream) return { body: await ask(server, path, body) };
  const response = await post(server, path, body);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  const all = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  return { events: all.map((line) => JSON.parse(line.slice(6))) };
}

describe('the fields of a generation', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fields-'));
  test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  const model = join(folder, 'gaps.gguf');
  withGaps(model);
  const server = await start(test, [...demo, '-m', model, '--slot-save-path', folder, '-c', '20480', '-np', '16']);
  const small = await start(test, [...demo, '-m', model, '-c', '4096', '-np', '16', '--context-shift']);
  const document = await (await server.fetch('/openapi.json')).json();
  const fields = Object.keys(document.components.schemas.GenerationFields.properties);

  it('all have a case, on all routes that take them', () => {
    assert.deepEqual(Object.keys(effects).sort(), [...fields].sort());
    const taking = Object.entries(document.paths)
      .filter(([, path]) => JSON.stringify(path.post ?? {}).includes('/GenerationFields')).map(([path]) => path);
    assert.deepEqual([...Object.keys(routes), ...hearing].sort(), taking.sort());
  });

  const asker = (server, route, [bodyOf, readAnswer]) => {
    const at = async (text) => {
      if (!route.includes('{id}')) return route;
      const { id } = await ask(server, '/v1/sessions', { messages: messages(text) });
      return route.replace('{id}', id);
    };
    // What `run` gave, and the line of the log about it, which comes a little later.
    const logged = async (path, run) => {
      const begin = server.stderr.length;
      const got = await run();
      const lines = () => server.stderr.slice(begin).split('\n').slice(0, -1).filter((line) => line.includes(`route=${path} `));
      while (lines().length === 0) await server.metrics();
      return [got, lines()[0]];
    };
    const say = async (wish, text = question) => {
      const path = await at(text);
      const [got, line] = await logged(path, () => read(server, path, { ...bodyOf(text), ...wish }));
      if (path !== route) await server.fetch(path.replace(/\/generate$/, ''), { method: 'DELETE' });
      return { ...got, ...(got.body ? readAnswer(got.body) : {}), serviceClass: / class=(\S+)/.exec(line)[1] };
    };
    const refuse = async (wish, field) => {
      const path = await at(question);
      const [[response, said]] = await logged(path, async () => {
        const refused = await post(server, path, { ...bodyOf(question), ...wish });
        return [refused, await refused.text()];
      });
      assert.equal(response.status, 400, said);
      assert.ok(said.includes(field), said);
    };
    return { say, refuse };
  };
  for (const [route, form] of Object.entries(routes)) {
    describe(route, () => {
      for (const field of fields) {
        it(field, async () => {
          const asked = shifting.includes(field) ? small : server;
          const { say, refuse } = asker(asked, route, form);
          const refusal = refusals[route]?.[field];
          if (refusal !== undefined) return refuse({ [field]: refusal }, field);
          if (!without[route]?.includes(field)) return effects[field](say, refuse, asked);
          const types = async (more) => (await say({ temperature: 0, max_tokens: 4, stream: true, ...more })).events.map(shape);
          assert.deepEqual(await types({ [field]: values[field] }), await types({}), 'it changes nothing');
        });
      }
    });
  }
});
