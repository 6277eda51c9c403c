// What each field of a generation does, seen from outside: one case for each field of the table that the documentation
// and /openapi.json are made from, for every route that takes them. fields.test.mjs runs them all, and fails where a field
// has no case here.
import assert from 'node:assert/strict';

import { post } from './client.mjs';

// Hot enough that even a model which is sure of its answer has a choice, and drawn in the same way each time.
export const wild = { temperature: 8, top_k: 0, top_p: 1, min_p: 0, seed: 1, max_tokens: 16 };
const greedy = { temperature: 0, max_tokens: 16 };
const text = async (say, fields) => (await say(fields)).text;

async function same(say, a, b) {
  assert.equal(await text(say, a), await text(say, b), JSON.stringify(a));
}
async function differs(say, a, b) {
  assert.notEqual(await text(say, a), await text(say, b), `${JSON.stringify(a)} changes nothing`);
}
const changes = (fields, base = wild) => (say) => differs(say, { ...base, ...fields }, base);
// Only the most likely token is left.
const decides = (fields) => (say) => same(say, { ...wild, ...fields }, greedy);
// What leaves the same few tokens whatever the seed is, though not the most likely ones.
async function narrows(say, fields) {
  await same(say, { ...wild, ...fields, seed: 1 }, { ...wild, ...fields, seed: 2 });
  await differs(say, { ...wild, ...fields }, wild);
}
// `field` matters only beside `others`.
const modifies = (field, others, base = wild) => (say) => differs(say, { ...base, ...others, ...field }, { ...base, ...others });

const counts = (name) => async (say) => {
  const { tokens, finish } = await say({ temperature: 0, max_tokens: undefined, [name]: 5 });
  assert.deepEqual([tokens, finish], [5, 'length']);
};
const long = { temperature: 0, max_tokens: 80, ignore_eos: true };
// One word again and again, until something is taken off for that.
const again = { temperature: 0, max_tokens: 16, logit_bias: { ' the': 100 } };
const dry = { dry_multiplier: 100, dry_base: 2, dry_allowed_length: 1, dry_penalty_last_n: -1 };
const xtc = { ...wild, temperature: 1, xtc_probability: 1, xtc_threshold: 0 };
const adaptive = { samplers: ['temperature', 'adaptive_p'], adaptive_target: 0.2, adaptive_decay: 0.5, temperature: 2, seed: 1, max_tokens: 16 };
const schema = { type: 'object', properties: { a: { enum: ['x', 'y'] } }, required: ['a'], additionalProperties: false };
const checkSchema = (said) => assert.ok(['x', 'y'].includes(JSON.parse(said).a), said);
const asClass = (name, value, expected) => async (say) => assert.equal((await say({ ...greedy, [name]: value })).serviceClass, expected);
// Longer than a slot of the small server of fields.test.mjs, so that its context is shifted. Drawn hot: what the
// demo model likes best repeats itself whatever it remembers, and it depends on the processor how soon.
const shifted = { ...wild, max_tokens: 400, ignore_eos: true };
export const shifting = ['n_keep', 'n_discard'];

let lastSlot = 4;
let runners = 0;

// field: (say, refused, server) => …; say(fields, question) answers { text, finish, tokens, cached, serviceClass, events }.
export const effects = {
  max_tokens: counts('max_tokens'),
  n_predict: counts('n_predict'),
  max_completion_tokens: counts('max_completion_tokens'),
  min_tokens: async (say) => {
    const whole = await say({ temperature: 0 });
    assert.equal(whole.finish, 'stop');
    assert.ok((await say({ temperature: 0, min_tokens: whole.tokens + 20, max_tokens: whole.tokens + 60 })).tokens >= whole.tokens + 20);
  },
  temperature: changes({ temperature: 0.01 }),
  dynatemp_range: modifies({ dynatemp_range: 3.9 }, { temperature: 4 }),
  dynatemp_exponent: modifies({ dynatemp_exponent: 0.01 }, { temperature: 8, dynatemp_range: 7.9, dynatemp_exponent: 9 }),
  top_k: decides({ top_k: 1 }),
  top_p: decides({ top_p: 1e-6, temperature: 1 }),
  min_p: decides({ min_p: 1 }),
  top_n_sigma: decides({ top_n_sigma: 1e-6 }),
  typical_p: (say) => narrows(say, { typical_p: 1e-6, temperature: 1 }),
  typ_p: (say) => narrows(say, { typ_p: 1e-6, temperature: 1 }),
  xtc_probability: (say) => differs(say, xtc, { ...xtc, xtc_probability: 0 }),
  xtc_threshold: (say) => differs(say, xtc, { ...xtc, xtc_threshold: 0.6 }),
  min_keep: modifies({ min_keep: 50 }, { min_p: 1 }),
  repeat_penalty: changes({ repeat_penalty: 10, repeat_last_n: -1 }, long),
  repetition_penalty: changes({ repetition_penalty: 10, repeat_last_n: -1 }, long),
  repeat_last_n: async (say) => {
    await same(say, { ...long, repeat_penalty: 10, repeat_last_n: 0 }, long);
    await differs(say, { ...long, repeat_penalty: 10, repeat_last_n: -1 }, long);
  },
  frequency_penalty: changes({ frequency_penalty: 20, repeat_last_n: -1 }, long),
  presence_penalty: changes({ presence_penalty: 50, repeat_last_n: -1 }, long),
  dry_multiplier: changes(dry, again),
  dry_base: (say) => differs(say, { ...again, ...dry, dry_multiplier: 1, dry_base: 100 }, { ...again, ...dry, dry_multiplier: 1, dry_base: 1 }),
  dry_allowed_length: (say) => same(say, { ...again, ...dry, dry_allowed_length: 1000 }, again),
  dry_penalty_last_n: (say) => same(say, { ...again, ...dry, dry_penalty_last_n: 0 }, again),
  dry_sequence_breakers: (say) => same(say, { ...again, ...dry, dry_sequence_breakers: [' the'] }, again),
  mirostat: changes({ mirostat: 2 }),
  mirostat_tau: modifies({ mirostat_tau: 0.01 }, { mirostat: 2 }),
  mirostat_eta: modifies({ mirostat_eta: 1 }, { mirostat: 2, mirostat_tau: 3, temperature: 4, max_tokens: 60 }),
  adaptive_target: (say) => differs(say, adaptive, { ...adaptive, adaptive_target: -1 }),
  adaptive_decay: (say) => differs(say, { ...adaptive, max_tokens: 60, adaptive_decay: 0.01 }, { ...adaptive, max_tokens: 60, adaptive_decay: 0.99 }),
  samplers: async (say) => {
    await same(say, { ...wild, samplers: ['top_k', 'temperature'], top_k: 1 }, greedy);
    await differs(say, { ...wild, samplers: ['temperature'], top_k: 1 }, greedy);
    // None: drawn from what the model says, whatever else is asked for.
    await differs(say, { ...wild, samplers: [] }, wild);
    const plain = { ...wild, samplers: ['temperature'], temperature: 1 };
    await same(say, { ...wild, samplers: [], top_k: 1 }, plain);
    await same(say, { ...wild, samplers: '', temperature: 0 }, plain);
  },
  seed: async (say) => {
    await same(say, { ...wild, seed: 5 }, { ...wild, seed: 5 });
    await differs(say, { ...wild, seed: 5 }, { ...wild, seed: 6 });
  },
  logit_bias: async (say) => {
    const first = (await say({ ...greedy, max_tokens: 1 })).text;
    assert.notEqual((await say({ ...greedy, max_tokens: 1, logit_bias: { [first]: -100 } })).text, first);
    assert.notEqual((await say({ ...greedy, max_tokens: 1, logit_bias: [[first, false]] })).text, first);
  },
  ignore_eos: async (say) => {
    assert.equal((await say({ temperature: 0, max_tokens: 200 })).finish, 'stop');
    assert.equal((await say({ temperature: 0, max_tokens: 200, ignore_eos: true })).finish, 'length');
  },
  stop: async (say) => {
    const whole = await say(greedy);
    const stop = whole.text.slice(6, 10);
    const cut = await say({ ...greedy, stop: [stop] });
    assert.deepEqual([cut.text, cut.finish], [whole.text.slice(0, whole.text.indexOf(stop)), 'stop']);
  },
  stop_token_ids: async (say, refused, server) => {
    const whole = await say(greedy);
    const body = JSON.stringify({ content: whole.text });
    const { tokens } = await (await server.fetch('/tokenize', { method: 'POST', body })).json();
    const cut = await say({ ...greedy, stop_token_ids: [tokens[3]] });
    assert.ok(whole.text.startsWith(cut.text) && cut.text.length < whole.text.length, cut.text);
    assert.equal(cut.finish, 'stop');
  },
  n_probs: async (say) => {
    const { chances } = await say({ ...greedy, n_probs: 3 });
    assert.equal(chances.length, 16);
    assert.ok(chances.every((one) => one.others === 3), JSON.stringify(chances));
  },
  // Where one candidate is left it is certain, however likely it was before.
  post_sampling_probs: async (say) => {
    const one = { ...wild, top_k: 1, n_probs: 2, max_tokens: 8 };
    assert.ok((await say({ ...one, post_sampling_probs: true })).chances.every(({ own }) => own === 1));
    assert.ok((await say(one)).chances.some(({ own }) => own < 1));
  },
  grammar: async (say) => assert.match(await text(say, { ...wild, grammar: 'root ::= [0-9]{5}' }), /^\d{5}$/),
  json_schema: async (say) => checkSchema(await text(say, { ...wild, max_tokens: 100, json_schema: schema })),
  schema_order: async (say) => {
    const sides = { properties: { left: { const: 1 }, right: { const: 2 } }, required: ['left', 'right'] };
    const orders = async (schema_order) => {
      const seen = new Set();
      for (let seed = 0; seed < 12; ++seed) {
        const said = await text(say, { ...wild, temperature: 100, max_tokens: 100, json_schema: sides, schema_order, seed });
        seen.add(Object.keys(JSON.parse(said)).join());
      }
      return seen.size;
    };
    assert.deepEqual([await orders('written'), await orders('any')], [1, 2]);
  },
  response_format: async (say) => checkSchema(
    await text(say, { ...wild, max_tokens: 100, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } })),
  stream: async (say) => {
    const streamed = await say({ ...greedy, stream: true });
    assert.ok(streamed.events.length > 5, 'it came in events');
  },
  stream_options: async (say) => {
    const usage = (events) => events.filter((event) => event.usage).length;
    const { events } = await say({ ...greedy, stream: true, stream_options: { include_usage: true } });
    const without = await say({ ...greedy, stream: true, stream_options: { include_usage: false } });
    assert.equal(usage(events), usage(without.events) + 1);
  },
  timings_per_token: async (say) => {
    const timed = ({ events }) => events.filter((event) => event.timings).length;
    const every = timed(await say({ ...greedy, stream: true, timings_per_token: true }));
    assert.ok(every > 10 && timed(await say({ ...greedy, stream: true })) <= 1, `${every}`);
  },
  return_progress: async (say) => {
    const told = ({ events }) => events.filter((event) => event.prompt_progress).map((event) => event.prompt_progress);
    const stories = `${'Who runs over the mountains, and with what? '.repeat(100)}Who?`;
    const read = told(await say({ ...greedy, stream: true, return_progress: true, cache_prompt: false }, stories));
    const last = read.at(-1);
    assert.ok(read.length > 1 && last.total > 800 && last.cache === 0 && last.processed === last.total, JSON.stringify(read));
    assert.equal(read[0].processed, 0, 'the first says that it begins');
    read.reduce((before, one) => (assert.ok(one.processed > before.processed && one.time_ms >= before.time_ms), one));
    assert.deepEqual(told(await say({ ...greedy, stream: true })), []);
  },
  cache_prompt: async (say) => {
    await say(greedy);
    assert.ok((await say(greedy)).cached > 0);
    assert.equal((await say({ ...greedy, cache_prompt: false })).cached, 0);
  },
  deterministic: async (say) => {
    await say(greedy);
    const first = await say({ ...greedy, deterministic: true });
    assert.equal(first.cached, 0, 'what others have computed is of no use to it');
    assert.equal((await say({ ...greedy, deterministic: true })).text, first.text);
    const drawn = { temperature: 8, top_k: 0, top_p: 1, min_p: 0, max_tokens: 16, deterministic: true };
    await same(say, drawn, { ...drawn, seed: 0 });
  },
  return_cache: async (say) => {
    const cacheOf = ({ body }) => body.timings?.cache ?? body.response?.timings?.cache;
    await say(greedy);
    const cache = cacheOf(await say({ ...greedy, return_cache: true }));
    assert.deepEqual([cache.source, cache.limit, cache.recomputed_tokens], ['memory', 'whole_prompt', 0]);
    assert.ok(cache.known_tokens > 0 && cache.entry_tokens > cache.known_tokens, JSON.stringify(cache));
    assert.equal(cacheOf(await say({ ...greedy, return_cache: true, cache_prompt: false })).limit, 'off');
    assert.equal(cacheOf(await say(greedy)), undefined);
  },
  timeout_ms: async (say) => assert.ok((await say({ temperature: 0, ignore_eos: true, max_tokens: 1100, timeout_ms: 60 })).tokens < 1100),
  t_max_prompt_ms: async (say, refused) => {
    const fields = { temperature: 0, ignore_eos: true, max_tokens: 4, cache_prompt: false };
    assert.equal((await say({ ...fields, t_max_prompt_ms: 1 })).tokens, 4);
    await refused({ ...fields, t_max_prompt_ms: 0 }, 't_max_prompt_ms');
  },
  ttft_timeout_ms: async (say, refused) => {
    const fields = { temperature: 0, ignore_eos: true, max_tokens: 4 };
    assert.equal((await say({ ...fields, ttft_timeout_ms: 60_000 })).tokens, 4);
    await refused({ ...fields, ttft_timeout_ms: 0 }, 'ttft_timeout_ms');
  },
  t_max_predict_ms: async (say) => {
    const fields = { temperature: 0, ignore_eos: true, t_max_predict_ms: 1 };
    assert.ok((await say({ ...fields, max_tokens: 1100, grammar: 'root ::= "\\n" [a-z ]+' })).tokens < 1100);
    assert.equal((await say({ ...fields, max_tokens: 60, grammar: 'root ::= [a-z ]+' })).tokens, 60);
  },
  priority: asClass('priority', 'background', 'background'),
  class: asClass('class', 'interactive', 'interactive'),
  service_tier: asClass('service_tier', 'flex', 'background'),
  id_slot: async (say, refused, server) => {
    const slot = ++lastSlot;
    const save = () => post(server, `/slots/${slot}?action=save`, { filename: 'said' });
    await post(server, `/slots/${slot}?action=erase`, {});
    assert.equal((await save()).status, 400, 'nothing is known of this number');
    await say({ temperature: 0, max_tokens: 4, id_slot: slot });
    const { n_saved: saved } = await (await save()).json();
    assert.ok(saved > 4, 'what was computed is found under it');
    for (const wrong of [-2, 4096]) await refused({ id_slot: wrong }, 'id_slot');
  },
  // What it does with a silent stream: log_file.test.mjs.
  sse_ping_interval: async (say, refused) => {
    await same(say, { ...greedy, sse_ping_interval: 1 }, greedy);
    await refused({ sse_ping_interval: -2 }, 'sse_ping_interval');
  },
  n_keep: async (say, refused) => {
    await differs(say, { ...shifted, n_keep: -1 }, shifted);
    await refused({ n_keep: -2 }, 'n_keep');
  },
  n_discard: async (say, refused) => {
    await differs(say, { ...shifted, n_discard: 100 }, shifted);
    await refused({ n_discard: -1 }, 'n_discard');
  },
  n_cache_reuse: async (say, refused) => {
    const again = async (fields) => {
      const stays = `Runner ${++runners} carries ${'knots and shells over the bridge, then '.repeat(6)}rests.`;
      await say({ ...greedy, max_tokens: 2 }, `${'The bridge is far. '.repeat(12)}\n${stays}`);
      return (await say({ ...greedy, max_tokens: 2, ...fields }, stays)).cached;
    };
    const begins = await again({});
    assert.ok(await again({ n_cache_reuse: 16 }) >= begins + 32, 'what has moved up was not computed again');
    await refused({ n_cache_reuse: -1 }, 'n_cache_reuse');
  },
  n_indent: async (say, refused) => {
    const lines = { ...greedy, max_tokens: 32, grammar: 'root ::= "if:\\n  a\\n   b\\nc"' };
    assert.equal((await say(lines)).text, 'if:\n  a\n   b\nc');
    assert.equal((await say({ ...lines, n_indent: 2 })).text.trimEnd(), 'if:\n  a\n   b', 'the rest of the code is not asked for');
    await refused({ n_indent: -1 }, 'n_indent');
  },
};

// Where a field has another effect: a refusal by its name, because the answer has no place for what it asks for …
const noChances = { n_probs: 3, post_sampling_probs: true };
export const refusals = {
  '/generate': noChances, '/v1/messages': noChances, '/v1/responses': noChances, '/responses': noChances,
};
// … or none, because every stream tells its usage or none does, and where the word has other values.
const streams = ['stream_options', 'timings_per_token', 'return_progress'];
export const without = {
  '/completion': ['stream_options'], '/completions': ['stream_options'], '/infill': ['stream_options', 'n_keep', 'n_discard'], '/generate': streams,
  '/v1/sessions/{id}/generate': ['n_keep', 'n_discard', 'n_cache_reuse'],  // sessions are not shifted
  '/v1/messages': [...streams, 'service_tier'], '/v1/responses': streams, '/responses': streams,
};
