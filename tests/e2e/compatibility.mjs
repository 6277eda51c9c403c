// The one table of what clients of llama-server and OpenAI send and how it is taken here. docs/compatibility.md is
// made from it (`node compatibility.mjs > ../../docs/compatibility.md`), and compatibility.test.mjs sends every row.
//
// [field, value to send, llama-server, OpenAI, here]. Words: yes; no: ignored without a word; refused: a 400 that names
// it; or what is different.
import { pathToFileURL } from 'node:url';

import { deliberate } from '../compare/deliberate.mjs';

const messages = [{ role: 'user', content: 'say: hello' }];
const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };
const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false };

// Fields of every generating route, tried on /v1/chat/completions.
const shared = [
  ['max_tokens', 3, 'yes', 'yes', 'yes'],
  ['max_completion_tokens', 3, 'yes', 'yes', 'yes'],
  ['n_predict', 3, 'yes', '-', 'yes'],
  ['min_tokens', 1, '-', '-', 'yes'],
  ['temperature', 0.5, 'yes', 'yes', 'yes'],
  ['top_p', 0.9, 'yes', 'yes', 'yes'],
  ['top_k', 10, 'yes', '-', 'yes'],
  ['min_p', 0.1, 'yes', '-', 'yes'],
  ['typical_p', 0.9, 'yes', '-', 'yes'],
  ['top_n_sigma', 1, 'yes', '-', 'yes'],
  ['xtc_probability', 0.1, 'yes', '-', 'yes'],
  ['xtc_threshold', 0.2, 'yes', '-', 'yes'],
  ['dynatemp_range', 0.1, 'yes', '-', 'yes'],
  ['dynatemp_exponent', 1, 'yes', '-', 'yes'],
  ['repeat_penalty', 1.1, 'yes', '-', 'yes'],
  ['repeat_last_n', 32, 'yes', '-', 'yes'],
  ['presence_penalty', 0.1, 'yes', 'yes', 'yes'],
  ['frequency_penalty', 0.1, 'yes', 'yes', 'yes'],
  ['dry_multiplier', 0.5, 'yes', '-', 'yes'],
  ['dry_sequence_breakers', ['\n'], 'yes', '-', 'yes'],
  ['mirostat', 2, 'yes', '-', 'yes'],
  ['adaptive_target', 0.5, 'yes', '-', 'yes'],
  ['samplers', ['top_k', 'temperature'], 'yes', '-', 'yes'],
  ['seed', 7, 'yes', 'yes', 'yes'],
  ['stop', ['x'], 'yes', 'yes', 'yes'],
  ['stop_token_ids', [300], '-', '-', 'yes'],
  ['logit_bias', { 300: -1 }, 'yes', 'yes', 'yes'],
  ['ignore_eos', true, 'yes', '-', 'yes'],
  ['grammar', 'root ::= "a"', 'yes', '-', 'yes'],
  ['json_schema', schema, 'yes', '-', 'yes'],
  ['cache_prompt', false, 'yes', '-', 'yes'],
  ['return_cache', true, '-', '-', 'yes'],
  ['deterministic', true, '-', '-', 'yes'],
  ['timings_per_token', true, 'yes', '-', 'yes'],
  ['return_progress', true, 'yes', '-', 'yes'],
  ['t_max_predict_ms', 1000, 'yes, from the first line break on', '-', 'yes, from the first line break on'],
  ['t_max_prompt_ms', 1000, 'no', '-', 'no: editors send half a second, and keep an empty answer'],
  ['timeout_ms', 5000, '-', '-', 'yes'],
  ['ttft_timeout_ms', 5000, '-', '-', 'yes'],
  ['priority', 'background', '-', '-', 'yes'],
  ['priority', 5, '-', '-', "yes, as vLLM's: above 0 background, below it interactive"],
  ['service_tier', 'flex', 'no', 'yes', 'yes'],
  ['service_tier', 'scale', 'no', 'yes', 'yes: the default'],
  ['sse_ping_interval', 60, 'yes', '-', 'yes'],
  ['parse_tool_calls', true, 'no', '-', 'no: calls are always read, as there'],
  ['n_keep', 5, 'yes', '-', 'yes, with `--context-shift`'],
  ['n_indent', 2, 'yes', '-', 'yes'],
];

export const table = {
  '/v1/chat/completions': { base: { messages, max_tokens: 4 }, rows: [
    ...shared,
    ['stream', true, 'yes', 'yes', 'yes'],
    ['stream_options', { include_usage: true }, 'yes', 'yes', 'yes'],
    ['n', 2, 'yes', 'yes', 'yes'],
    ['logprobs', true, 'in its own shape', 'yes', 'yes'],
    ['tools', [tool], 'yes', 'yes', 'yes'],
    ['parallel_tool_calls', false, 'yes', 'yes', 'yes'],
    ['response_format', { type: 'json_object' }, 'yes', 'yes', 'yes'],
    ['reasoning_format', 'none', 'yes', '-', 'yes'],
    ['reasoning_effort', 'low', 'yes', 'yes', 'yes, where the template knows it'],
    ['reasoning_budget_tokens', 100, 'yes', '-', 'yes'],
    ['reasoning_control', true, 'yes', '-', 'yes'],
    ['chat_template_kwargs', { x: 1 }, 'yes', '-', 'yes'],
    ['add_generation_prompt', true, 'yes', '-', 'yes'],
    ['n_cmpl', 2, 'yes', '-', 'yes'],
    ['response_format', { type: 'json_schema', schema }, 'any object; its README says: the schema', 'refused', 'yes'],
    ['echo', true, 'no', 'refused', 'refused'],
    ['suffix', 'x', 'no', 'refused', 'refused'],
    ['user', 'ann', 'no', 'yes', 'no'],
    ['temperature', 'hot', 'refused', 'refused', 'refused'],
    ['stream', 'yes', 'no: read as false', 'refused', 'refused'],
  ] },
  '/v1/completions': { base: { prompt: 'once', max_tokens: 4 }, rows: [
    ['stream', true, 'yes', 'yes', 'yes'],
    ['n', 2, 'yes', 'yes', 'yes'],
    ['best_of', 2, 'no', 'yes', 'yes'],
    ['echo', true, 'no', 'yes', 'yes'],
    ['suffix', 'end', 'no', 'yes', 'yes, where the model can fill gaps'],
    ['logprobs', 2, 'in its own shape', 'yes', 'yes'],
    ['prompt', ['a', 'b'], 'yes', 'yes', 'yes'],
    ['prompt', [300, 301], 'yes', 'yes', 'yes'],
    ['prompt', [300, 'a'], 'yes', '-', 'yes'],
    ['prompt', { prompt_string: 'a' }, 'yes', '-', 'yes'],
    ['prompt', {}, 'refused', 'refused', 'refused'],
  ] },
  '/completion': { base: { prompt: 'once', n_predict: 4 }, rows: [
    ['stream', true, 'yes', '-', 'yes'],
    ['n_probs', 2, 'yes', '-', 'yes'],
    ['post_sampling_probs', true, 'yes', '-', 'yes'],
    ['return_tokens', true, 'yes', '-', 'yes'],
    ['response_fields', ['content', 'timings/prompt_n'], 'yes', '-', 'yes'],
    ['n_predict', 0, 'one token', '-', 'yes: none'],
    ['id_slot', 0, 'yes', '-', 'yes: what was computed is saved and restored under this number; where it is computed is the scheduler\'s choice'],
    ['n_cmpl', 2, 'yes', '-', 'yes'],
  ] },
  '/v1/messages': { base: { messages, max_tokens: 4 }, rows: [
    ['system', 'Be brief.', 'yes', '-', 'yes'],
    ['stream', true, 'yes', '-', 'yes'],
    ['stop_sequences', ['x'], 'yes', '-', 'yes'],
    ['top_k', 5, 'yes', '-', 'yes'],
    ['metadata', { user_id: 'ann' }, 'no', '-', 'no'],
    ['output_config', { format: { type: 'json_schema', schema } }, 'no', '-', 'yes'],
    ['output_config', { effort: 'low' }, 'no', '-', 'yes, where the template knows it'],
    ['tools', [{ name: 'look', input_schema: { type: 'object', properties: {} } }], 'yes', '-', 'yes'],
  ] },
  '/v1/responses': { base: { input: 'say: hello', max_output_tokens: 4 }, rows: [
    ['stream', true, 'yes', 'yes', 'yes'],
    ['instructions', 'Be brief.', 'yes', 'yes', 'yes'],
    ['store', true, 'no', 'yes', 'yes'],
    ['previous_response_id', 'resp_unknown', 'refused', 'yes', 'refused unless it is stored'],
    ['metadata', { a: 'b' }, 'no', 'yes', 'yes'],
  ] },
};

// Headers and routes, which are not fields: in the document only; resume.test.mjs and others try them.
const beyond = `
## Beyond fields

| what | llama-server | OpenAI | here |
|---|---|---|---|
| \`X-Conversation-Id\`, \`GET /v1/stream\` | yes | - | yes, with an \`id\` on every event and \`Last-Event-ID\` |
| malformed JSON | 500 | 400 | 400 |
| many requests | they wait, without a limit | 429 | they wait, 10,000 at most and ten minutes long |
| \`/openapi.json\` | - | - | yes |
| text parts of a message | as parts, or with line breaks between them | as parts | as llama-server |
| pictures and sounds | data URLs, base64, addresses, paths; video | data URLs, addresses, ids of files | data URLs and base64, files in the folder of \`--media-path\`, addresses at the hosts of \`--media-url-hosts\`; others are refused |
| the same in results of tools | yes | Responses | yes |
| tools of type \`web_search\`, \`custom\`, \`namespace\` … | Responses: skipped; else refused | yes | skipped, named in \`X-Chasqui-Warning\` |
| Anthropic's own tools | functions without parameters | - | skipped, named in \`X-Chasqui-Warning\` |
| \`tools\` together with \`response_format\` | the schema holds, no calls | a call or the schema | a call or the schema; calls only where they are required; the schema alone where the prompt has begun the reasoning |
| \`tools\` together with \`grammar\` | refused | - | a call or the grammar |
| \`tool_choice: "required"\` without tools | no | refused | no |
| \`functions\`, \`function_call\`, role \`function\` | no; the role goes to the template | yes | as \`tools\` and role \`tool\`; answers have \`tool_calls\` |
| roles that are unknown | they go to the template | refused | they go to the template, where they are names of at most 64 letters, digits, \`_\` and \`-\` |
| an assistant's message at the end of a chat, which is gone on with | it comes again in front of the answer, in a stream with \`continue_final_message\` it does not | - | the answer is what the model adds |
| the same \`seed\` there and here | - | - | other tokens: each server draws in its own way |
| \`temperature\` below 0 | 0 | refused | refused |
| \`json_schema: {}\` | any object | - | as llama-server |
| a tool without \`parameters\` | \`{}\` in the prompt | an object without properties | \`{"type": "object", "properties": {}}\` in the prompt, since templates look into it |
| \`is_error\` of an Anthropic tool result | no | - | the model reads "Error: " before it |
| \`usage\` of several answers, or prompts | that of one | all of them | all of them |
| a prompt of more bytes than the context could have | counted | counted | \`n_prompt_tokens\` is what it has at least, which is too much already |
| \`stop: ""\`, an empty string in \`stop\` | no | refused | no |
| Responses: \`truncation: "auto"\`, \`background: true\` | no | yes | no: nothing is left out, and the response is made at once |
| a prompt that does not fit | 400, \`exceed_context_size_error\`, \`n_prompt_tokens\`, \`n_ctx\`, \`code: 400\` | \`code: "context_length_exceeded"\` | as llama-server, with OpenAI's words "maximum context length is N tokens" in the message and, on OpenAI's routes, its \`code\`; Messages: "prompt is too long: N tokens > M maximum" |
| \`GET /v1/models/{id}\` | - | yes | yes |
| \`X-Request-Id\` | - | made | echoed (128 printable bytes), or made; logged |
| errors below \`/api\` | in OpenAI's shape | - | in Ollama's: \`{"error": "…"}\` |
| \`--alias a,b\` | one model with two names | - | the same; the first is told as \`model\` |
| the name of a model without \`--alias\` | the path of its file, as \`-m\` says it | - | the one that the file says (\`general.name\`), else the file's; \`owned_by\` is \`chasqui\` |
| \`Idempotency-Key\` | no | yes | yes: the first answer again, with \`Idempotent-Replayed: true\`; 409 while it is under way, 422 with another body |
| \`Accept-Encoding: gzip\` | no | yes | answers of 8 KiB and more that do not stream |
| \`Content-Encoding\` of a request | no | - | refused: 415 |
| \`model: "tone"\`, the name of an adapter | no | - | that adapter, as in vLLM |
| a \`model\` that is not served | any name is taken | 404 | any name is taken; 404 with \`--check-model\` |
| \`strict\` of a tool | no | yes | no: calls keep to the schema in any case, as far as the converter goes |
| a public address without a key | yes | - | refused at start: \`--api-key\`, or \`--no-auth\` |
| \`HEAD\` | of every GET | - | of every GET |
| a slot longer than the context that the model was trained with | cut to that | - | as \`--ctx-size\` says: models of scaled RoPE often do not tell |

## Answers that differ on purpose

\`tests/compare/compare.mjs\` sends a body for each route and field to both servers, which serve the same model, and compares
statuses, members, types and settings. These differences are left, each for its reason.

| what | why |
|---|---|
`;

export function document() {
  let out = `# Compatibility

What clients of llama-server 0.5 and of OpenAI send, and what the server does with it. *no*: ignored without a word; *refused*: a 400
that names the field; *-*: not known there. Every row is sent to a server by \`tests/e2e/compatibility.test.mjs\`; this file
is made from the same table (\`node tests/e2e/compatibility.mjs\`). Flags of llama-server: [llama_flags.md](llama_flags.md).
`;
  for (const [route, { rows }] of Object.entries(table)) {
    out += `\n## ${route}\n\n| field | such as | llama-server | OpenAI | here |\n|---|---|---|---|---|\n`;
    for (const [field, value, llama, openai, here] of rows) {
      out += `| \`${field}\` | \`${JSON.stringify(value).replaceAll('|', '\\|')}\` | ${llama} | ${openai} | ${here} |\n`;
    }
  }
  const differences = deliberate.map(([what, why]) => `| ${what} | ${why} |\n`).join('');
  return out + beyond + differences;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) process.stdout.write(document());
