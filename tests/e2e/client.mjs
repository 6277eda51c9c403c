// Requests as clients send them, and their answers: JSON, or server-sent events read from the bytes of the stream.
import assert from 'node:assert/strict';

export const user = (content) => [{ role: 'user', content }];

export function post(server, path, body, options = {}) {
  const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const headers = { 'content-type': 'application/json', ...options.headers };
  return server.fetch(path, { ...options, method: 'POST', body: text, headers });
}

// A request that must succeed.
export async function ask(server, path, body, options) {
  const response = await post(server, path, body, options);
  const text = await response.text();
  assert.equal(response.status, 200, `${path} ${JSON.stringify(body).slice(0, 300)} → ${text}`);
  assert.equal(response.headers.get('content-type'), 'application/json');
  return JSON.parse(text);
}

// A request that must be refused: the body of the error, which always has the same four members.
export async function refused(response, status) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.equal(response.headers.get('content-type'), 'application/json');
  return checkError(JSON.parse(text), status);
}

export function checkError(body, status) {
  assert.deepEqual(Object.keys(body), ['error']);
  const { n_prompt_tokens: prompt, n_ctx: context, ...rest } = body.error;
  assert.deepEqual(Object.keys(rest).sort(), ['code', 'message', 'param', 'type']);
  assert.equal(prompt === undefined, context === undefined);
  // OpenAI's routes have OpenAI's word where a prompt does not fit.
  assert.ok(body.error.code === status || (context !== undefined && body.error.code === 'context_length_exceeded'), body.error.code);
  assert.ok(typeof body.error.message === 'string' && body.error.message.length > 0);
  assert.ok(typeof body.error.type === 'string' && body.error.type.endsWith('_error'), body.error.type);
  assert.ok(body.error.param === null || typeof body.error.param === 'string');
  return body.error;
}

// How long a refusal tells its client to wait, in milliseconds; both headers must say it.
export function retryAfter(response) {
  const ms = response.headers.get('retry-after-ms');
  const whole = response.headers.get('retry-after');
  assert.match(ms, /^[1-9]\d*$/);
  assert.equal(whole, String(Math.ceil(Number(ms) / 1000)));
  return Number(ms);
}

export async function answer(server, messages, fields = {}, options = {}) {
  const list = typeof messages === 'string' ? user(messages) : messages;
  const body = await ask(server, '/v1/chat/completions', { temperature: 0, messages: list, ...fields }, options);
  return { ...body, text: body.choices[0].message.content, finish: body.choices[0].finish_reason };
}

// The lines of the log about requests that have ended, as key → value.
export function requestLines(server) {
  return server.stderr.split('\n').filter((line) => line.includes(' I request ')).map(
    (line) => Object.fromEntries([...line.matchAll(/(\w+)=("(?:[^"\\]|\\.)*"|\S+)/g)].map(([, key, value]) => [key, value])));
}

// The data of each event. Every event must be UTF-8 by itself: a client may show it before the next one comes.
export async function* events(response) {
  let rest = Buffer.alloc(0);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const bytes of response.body) {
    rest = Buffer.concat([rest, bytes]);
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const event = decoder.decode(rest.subarray(0, end));
      rest = rest.subarray(end + 2);
      if (event.startsWith(':')) continue;
      assert.match(event, /^data: [^\n]*$/);
      yield event.slice('data: '.length);
    }
  }
  assert.equal(rest.length, 0, `the stream ended inside an event: ${rest}`);
}

// A stream of one answer, whose headers have come: nextText() for a piece of it, collect() for all that is left.
export class Stream {
  constructor(response, controller) {
    this.response = response;
    this.controller = controller;
    this.chunks = [];
    this.done = false;
  }

  [Symbol.asyncIterator]() {
    return (this.iterator ??= this.read());
  }

  async *read() {
    for await (const event of events(this.response)) {
      assert.ok(!this.done, `something came after [DONE]: ${event}`);
      if (event === '[DONE]') {
        this.done = true;
        continue;
      }
      const chunk = JSON.parse(event);
      this.chunks.push(chunk);
      yield chunk;
    }
  }

  async collect(onChunk = () => {}) {
    for await (const chunk of this) onChunk(chunk);
    assert.ok(this.done, `the stream ended without [DONE] after ${JSON.stringify(this.chunks.at(-1))}`);
    return this;
  }

  // Reads what comes until the stream is left: a client that does not read is cut after a while.
  readOn(onChunk) {
    this.collect(onChunk).catch(() => {});
  }

  // The next piece of text; the rest of the stream stays in the socket.
  async nextText() {
    for (;;) {
      const { value, done } = await this[Symbol.asyncIterator]().next();
      assert.ok(!done, 'the stream ended before there was more text');
      const text = pieceOf(value);
      if (text) return text;
    }
  }

  leave() {
    this.controller.abort();
  }

  get pieces() {
    return this.chunks.map(pieceOf).filter((text) => text);
  }
  get text() {
    return this.pieces.join('');
  }
  get finish() {
    const reasons = this.chunks.map((chunk) => chunk.choices?.[0]?.finish_reason).filter((reason) => reason);
    assert.equal(reasons.length, 1, 'a stream has one finish reason');
    return reasons[0];
  }
}

export function pieceOf(chunk) {
  const choice = chunk.choices?.[0];
  return chunk.text ?? choice?.delta?.content ?? choice?.text ?? '';
}

export async function stream(server, path, body, options = {}) {
  const controller = new AbortController();
  const response = await post(server, path, { stream: true, ...body }, { signal: controller.signal, ...options });
  if (response.status !== 200) assert.fail(`${response.status} ${await response.text()}`);
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  return new Stream(response, controller);
}

export function streamChat(server, messages, fields = {}, options = {}) {
  const list = typeof messages === 'string' ? user(messages) : messages;
  return stream(server, '/v1/chat/completions', { temperature: 0, messages: list, ...fields }, options);
}

// An answer that does not end by itself within any test.
export const endless = { ignore_eos: true, max_tokens: 1_000_000 };
