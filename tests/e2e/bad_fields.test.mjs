// Wrong requests: refused with the name of the field and what is allowed, and the server is unharmed.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, post, refused, user } from './client.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;
const chat = '/v1/chat/completions';

// Fields of every route that generates: [what is wrong, fields, the field that is named, what the message says].
const generation = [
  ['temperature is a string', { temperature: '1' }, 'temperature', /a number/],
  ['temperature is negative', { temperature: -0.1 }, 'temperature', /between 0 and 100/],
  ['temperature is huge', { temperature: 1e9 }, 'temperature', /between 0 and 100/],
  ['temperature is an array', { temperature: [1] }, 'temperature', /a number/],
  ['top_k is a fraction', { top_k: 1.5 }, 'top_k', /a whole number/],
  ['top_k is out of range', { top_k: -2 }, 'top_k', /between -1 and/],
  ['top_k is beyond 32 bits', { top_k: 2 ** 40 }, 'top_k', /31 bits/],
  ['top_p is above one', { top_p: 2 }, 'top_p', /between 0 and 1/],
  ['top_p is true', { top_p: true }, 'top_p', /a number/],
  ['min_p is negative', { min_p: -1 }, 'min_p', /between 0 and 1/],
  ['min_p is an object', { min_p: {} }, 'min_p', /a number/],
  ['repeat_penalty is zero', { repeat_penalty: 0 }, 'repeat_penalty', /between 0.01 and 100/],
  ['repeat_last_n is out of range', { repeat_last_n: -2 }, 'repeat_last_n', /between -1 and/],
  ['frequency_penalty is out of range', { frequency_penalty: 1000 }, 'frequency_penalty', /between -100 and 100/],
  ['presence_penalty is a string', { presence_penalty: 'much' }, 'presence_penalty', /a number/],
  ['seed is a string', { seed: 'lucky' }, 'seed', /a whole number/],
  ['seed is a fraction', { seed: 0.5 }, 'seed', /a whole number/],
  ['seed is a fraction', { seed: 1.5 }, 'seed', /a whole number/],
  ['model is an array', { model: [1] }, 'model', /a string/],
  ['stream_options is an array', { stream_options: [] }, 'stream_options', /an object/],
  ['max_tokens is -2', { max_tokens: -2 }, 'max_tokens', /between -1 .* and \d+/],
  ['max_tokens is huge', { max_tokens: 2 ** 40 }, 'max_tokens', /between -1 .* and \d+/],
  ['max_tokens is beyond 64 bits', { max_tokens: 1e30 }, 'max_tokens', /a whole number/],
  ['max_tokens is a fraction', { max_tokens: 1.5 }, 'max_tokens', /a whole number/],
  ['max_tokens is a string', { max_tokens: '10' }, 'max_tokens', /a whole number/],
  ['max_completion_tokens is a string', { max_completion_tokens: '10' }, 'max_completion_tokens', /a whole number/],
  ['stop has 65 entries', { stop: Array(65).fill('x') }, 'stop', /at most 64/],
  ['stop is too long', { stop: 'x'.repeat(2049) }, 'stop', /at most 2048 bytes/],
  ['stop is a number', { stop: 1 }, 'stop', /a string or an array of strings/],
  ['stop holds a number', { stop: ['x', 1] }, 'stop', /a string or an array of strings/],
  ['logit_bias is a string', { logit_bias: 'x' }, 'logit_bias', /token id/],
  ['logit_bias names no token', { logit_bias: { '': 1 } }, 'logit_bias', /token id/],
  ['logit_bias has a token out of range', { logit_bias: { 999999999: 1 } }, 'logit_bias', /between 0 and \d+/],
  ['logit_bias has a negative token', { logit_bias: { '-1': 1 } }, 'logit_bias', /between 0 and \d+/],
  ['logit_bias has a string for a bias', { logit_bias: { 1: 'x' } }, 'logit_bias', /token id/],
  ['logit_bias has a pair of three', { logit_bias: [[1, 2, 3]] }, 'logit_bias', /token id/],
  ['logit_bias is too long', { logit_bias: Array(1025).fill([1, 1]) }, 'logit_bias', /at most 1024/],
  ['ignore_eos is a number', { ignore_eos: 1 }, 'ignore_eos', /true or false/],
  ['stream is a string', { stream: 'yes' }, 'stream', /true or false/],
  ['deterministic is a number', { deterministic: 1 }, 'deterministic', /true or false/],
  ['return_cache is a text', { return_cache: 'yes' }, 'return_cache', /true or false/],
  ['cache_prompt is a number', { cache_prompt: 1 }, 'cache_prompt', /true or false/],
  ['mirostat is three', { mirostat: 3 }, 'mirostat', /between 0 and 2/],
  ['typical_p is above one', { typical_p: 1.5 }, 'typical_p', /between 0 and 1/],
  ['xtc_probability is a string', { xtc_probability: 'x' }, 'xtc_probability', /a number/],
  ['dynatemp_range is negative', { dynatemp_range: -1 }, 'dynatemp_range', /between 0 and 100/],
  ['dry_base is below one', { dry_base: 0.5 }, 'dry_base', /between 1 and 100/],
  ['dry_sequence_breakers are numbers', { dry_sequence_breakers: [1] }, 'dry_sequence_breakers', /strings/],
  ['samplers are unknown', { samplers: ['beam'] }, 'samplers', /top_n_sigma/],
  ['samplers come twice', { samplers: 'kk' }, 'samplers', /each once/],
  ['min_tokens is negative', { min_tokens: -1 }, 'min_tokens', /between 0 and/],
  ['stop_token_ids is a number', { stop_token_ids: 3 }, 'stop_token_ids', /an array/],
  ['stop_token_ids are out of range', { stop_token_ids: [9999999] }, 'stop_token_ids', /between 0 and/],
  ['n_probs is too large', { n_probs: 101 }, 'n_probs', /between 0 and 100/],
  ['id_slot is beyond the slots', { id_slot: 4096 }, 'id_slot', /between 0 and \d+, or -1/],
  ['t_max_prompt_ms is zero', { t_max_prompt_ms: 0 }, 't_max_prompt_ms', /between 1 and/],
  ['ttft_timeout_ms is zero', { ttft_timeout_ms: 0 }, 'ttft_timeout_ms', /between 1 and/],
  ['t_max_predict_ms is a string', { t_max_predict_ms: 'x' }, 't_max_predict_ms', /a whole number/],
  ['n_indent is negative', { n_indent: -1 }, 'n_indent', /spaces and tabs/],
  ['timeout_ms is zero', { timeout_ms: 0 }, 'timeout_ms', /between 1 and/],
  ['priority is unknown', { priority: 'royal' }, 'priority', /interactive, standard or background/],
  ['priority is a fraction', { priority: 0.5 }, 'priority', /a whole number/],
  ['service_tier is a number', { service_tier: 1 }, 'service_tier', /a string/],
];

const openai = [
  ['n is seventeen', { n: 17 }, 'n', /between 1 and 16/],
  ['n is zero', { n: 0 }, 'n', /between 1 and 16/],
  ['n is a string', { n: 'one' }, 'n', /a whole number/],
  ['logprobs are a string', { logprobs: 'many' }, 'logprobs', /true or false|a whole number/],
  ['a grammar is given to a simulated model', { grammar: 'root ::= "x"' }, 'grammar', /simulated/],
  ['a grammar is a number', { grammar: 7 }, 'grammar', /a string/],
  ['a format is unknown', { response_format: { type: 'xml' } }, 'response_format.type', /text, json_object or/],
  ['a format has no schema', { response_format: { type: 'json_schema' } }, 'response_format.json_schema', /an object/],
  ['a schema and a grammar', { json_schema: {}, grammar: 'root ::= "x"' }, 'grammar', /only one of/],
  ['response_format is a string', { response_format: 'text' }, 'response_format', /an object/],
  ['stream_options is a string', { stream_options: 'usage' }, 'stream_options', /an object/],
  ['include_usage is a string', { stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage',
    /true or false/],
];

const conversations = [
  ['messages are missing', {}, 'messages', /an array of 1 to \d+ messages/],
  ['messages are null', { messages: null }, 'messages', /an array of 1 to \d+ messages/],
  ['messages are empty', { messages: [] }, 'messages', /an array of 1 to \d+ messages/],
  ['messages are a string', { messages: 'hi' }, 'messages', /an array/],
  ['messages are too many', { messages: Array(4097).fill(user('x')[0]) }, 'messages', /1 to 4096/],
  ['a message is a string', { messages: ['hi'] }, 'messages[0]', /an object with role and content/],
  ['a role is no name', { messages: [{ role: 'the king', content: 'x' }] }, 'messages[0].role', /one of system, .*user/],
  ['a role is a number', { messages: [{ role: 1, content: 'x' }] }, 'messages[0].role', /string|one of/],
  ['a role is missing', { messages: [...user('x'), { content: 'x' }] }, 'messages[1].role', /one of system/],
  ['a content is missing', { messages: [{ role: 'user' }] }, 'messages[0].content', /a string or an array/],
  ['a content is a number', { messages: user(7) }, 'messages[0].content', /a string or an array/],
  ['a part is a string', { messages: user(['x']) }, 'messages[0].content[0]', /an object/],
  ['a part is an image', { messages: user([{ type: 'image_url', image_url: {} }]) }, 'messages[0].content[0].image_url.url',
    /a data URL/],
  ['a part is a sound', { messages: user([{ type: 'input_audio', input_audio: {} }]) }, 'messages[0].content[0].input_audio.data',
    /a file as base64/],
  ['a part is a film', { messages: user([{ type: 'video_url' }]) }, 'messages[0].content[0].type',
    /text, image_url or input_audio/],
  ['a part has no text', { messages: user([{ type: 'text' }]) }, 'messages[0].content[0].text', /a string/],
  ['a tool has no function', { messages: user('x'), tools: [{ type: 'function' }] }, 'tools[0].function', /an object/],
  ['a tool has no name', { messages: user('x'), tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name',
    /a string/],
  ['a user is to be continued', { messages: user('x'), continue_final_message: true }, 'continue_final_message',
    /assistant/],
];

const prompts = [
  ['prompt is missing', {}, 'prompt', /a string or an array of token ids/],
  ['prompt is a number', { prompt: 5 }, 'prompt', /a string, an array of token ids and strings, or an array of those/],
  ['prompt holds another thing', { prompt: [300, {}] }, 'prompt', /texts and ids between 0 and|ids between 0 and/],
  ['prompt_string is a number', { prompt: { prompt_string: 3 } }, 'prompt.prompt_string', /a string/],
  ['prompt has a picture', { prompt: { prompt_string: 'x', multimodal_data: ['eA=='] } }, 'prompt.multimodal_data',
    /a file for each <__media__>/],
  ['prompt is empty', { prompt: '' }, 'prompt', /at least one token/],
  ['prompt is no tokens', { prompt: [] }, 'prompt', /at least one token/],
  ['logprobs are too many', { prompt: 'x', logprobs: 21 }, 'logprobs', /between 0 and 20/],
  ['best_of is less than n', { prompt: 'x', n: 2, best_of: 1 }, 'best_of', /at least n/],
  ['best_of streams', { prompt: 'x', best_of: 2, stream: true }, 'best_of', /n in a stream/],
  ['echo is a string', { prompt: 'x', echo: 'yes' }, 'echo', /true or false/],
  ['echo and logprobs with a suffix', { prompt: 'x', echo: true, logprobs: 1, suffix: 'y' }, 'suffix', /left out with echo and logprobs/],
  ['suffix without a model for it', { prompt: 'x', suffix: 'y' }, 'suffix', /no tokens for a gap/],
  ['prompt has a token out of range', { prompt: [1, 999999] }, 'prompt', /between 0 and \d+/],
  ['prompt has a negative token', { prompt: [1, -1] }, 'prompt', /between 0 and \d+/],
  ['prompt has a fraction of a token', { prompt: [1, 1.5] }, 'prompt', /ids between 0 and \d+/],
  ['prompt is a batch of anything', { prompt: ['one', {}] }, 'prompt', /an array of those/],
  ['prompt is a batch that is too large', { prompt: Array(129).fill('x') }, 'prompt', /at most 128/],
  ['prompts and n are too many', { prompt: Array(100).fill('x'), n: 2 }, 'prompt', /at most 128/],
];

const tools = [
  ['/tokenize', {}, 'content', /a string/],
  ['/tokenize', { content: 5 }, 'content', /a string/],
  ['/tokenize', { content: 'x', add_special: 'yes' }, 'add_special', /true or false/],
  ['/tokenize', { content: 'x', with_pieces: 1 }, 'with_pieces', /true or false/],
  ['/detokenize', {}, 'tokens', /an array of token ids/],
  ['/detokenize', { tokens: 'x' }, 'tokens', /an array/],
  ['/detokenize', { tokens: [1, -1] }, 'tokens', /between 0 and \d+/],
  ['/detokenize', { tokens: [2 ** 40] }, 'tokens', /between 0 and \d+/],
  ['/detokenize', { tokens: ['1'] }, 'tokens', /between 0 and \d+/],
  ['/apply-template', {}, 'messages', /an array of 1 to/],
  ['/apply-template', { messages: [{ role: '<x>', content: '' }] }, 'messages[0].role', /one of/],
  ['/generate', {}, 'prompt', /a string/],
  ['/generate', { prompt: [1] }, 'prompt', /a string/],
  ['/generate', { prompt: 'x', rep_penalty: 'x' }, 'rep_penalty', /a number/],
];

describe('a wrong field', async () => {
  const server = await start(test, sim);
  const rows = [
    ...generation.flatMap(([what, fields, ...rest]) => [
      [chat, what, { messages: user('say: x'), ...fields }, ...rest],
      ['/v1/completions', what, { prompt: 'x', ...fields }, ...rest],
      ['/generate', what, { prompt: 'x', ...fields }, ...rest],
    ]),
    ...openai.flatMap(([what, fields, ...rest]) => [
      [chat, what, { messages: user('say: x'), ...fields }, ...rest],
      ['/v1/completions', what, { prompt: 'x', ...fields }, ...rest],
    ]),
    ...conversations.map((row) => [chat, ...row]),
    ...prompts.map((row) => ['/v1/completions', ...row]),
    ...tools.map(([path, fields, ...rest]) => [path, JSON.stringify(fields), fields, ...rest]),
  ];

  for (const path of new Set(rows.map(([path]) => path))) {
    const mine = rows.filter((row) => row[0] === path);
    it(`is refused by ${path} with its name and what is allowed (${mine.length} ways)`, async () => {
      for (const [, what, body, param, message] of mine) {
        const error = await refused(await post(server, path, body), 400).catch((cause) => {
          throw new Error(`${what}: ${cause.message}`, { cause });
        });
        assert.equal(error.param, param, `${what}: ${error.message}`);
        assert.match(error.message, message, what);
        assert.equal(error.type, 'invalid_request_error', what);
        // Unharmed: the next one is answered.
        assert.equal((await ask(server, '/tokenize', { content: 'a' })).tokens.length, 1);
      }
      assert.equal((await answer(server, 'say: unharmed')).text, 'unharmed');
    });
  }

  it('of a prompt that is too long has a type of its own', async () => {
    for (const [path, body] of [
      [chat, { messages: user('x'.repeat(5000)) }],
      ['/v1/completions', { prompt: 'x'.repeat(5000) }],
      ['/v1/completions', { prompt: Array(4096).fill(300) }],
      ['/generate', { prompt: 'x'.repeat(5000) }],
    ]) {
      const error = await refused(await post(server, path, body), 400);
      assert.equal(error.type, 'exceed_context_size_error');
      assert.equal(error.n_ctx, 4096);
      assert.ok(error.n_prompt_tokens >= 4096, `${path} ${error.n_prompt_tokens}`);
      assert.match(error.message, /\d+ tokens.* exceeds the available context size \(4096 tokens\)/);
    }
  });

  it('that is unknown or null, does not matter', async () => {
    const fields = { temperature: null, stop: null, logit_bias: null, tools: null, novelty: { of: ['tomorrow'] } };
    assert.equal((await answer(server, 'say: fine', fields)).text, 'fine');
  });
});
