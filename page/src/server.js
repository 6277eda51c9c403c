// The server's routes, and its streams of events read from the bytes: EventSource can send neither a key nor a body.

export class Refusal extends Error {
  constructor(status, body, retryAfter) {
    super(body?.error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.retryAfter = retryAfter; // seconds; 0: it did not say
  }
}

// Addresses are relative, so that the page also works behind a proxy that serves it from a folder.
export async function ask(path, { key, body, signal, method, headers: more } = {}) {
  const headers = { ...more };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers['Content-Type'] = 'application/json';
  const options = { headers, signal, method: method ?? (body ? 'POST' : 'GET'), body: body && JSON.stringify(body) };
  const response = await fetch(path, options);
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  throw new Refusal(response.status, answer, Number(response.headers.get('retry-after') ?? 0));
}

// The connection ended, or could not be made; the server may still have the stream.
export class Break extends Error {}

// Calls onData with the data and the id of each event and onComment with each comment, as soon as its bytes are there.
export async function readEvents(response, onData, onComment = () => {}) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    let end;
    while ((end = rest.indexOf('\n\n')) >= 0) {
      const lines = rest.slice(0, end).split('\n');
      rest = rest.slice(end + 2);
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      const id = lines.find((line) => line.startsWith('id:'))?.slice(3).trim();
      if (data.length > 0) onData(data.join('\n'), id);
      else if (lines[0].startsWith(':')) onComment(lines[0].slice(1).trim());
    }
  }
}

// The pieces of a tool call come one after the other and are told apart by their index.
export function addToolCalls(calls, pieces) {
  for (const piece of pieces ?? []) {
    const call = (calls[piece.index ?? 0] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
    if (piece.id) call.id = piece.id;
    if (piece.function?.name) call.function.name += piece.function.name;
    if (piece.function?.arguments) call.function.arguments += piece.function.arguments;
  }
}

// Asks for one answer, into `node`: content, reasoning, tool_calls, finish, usage, timings. `changed` runs after each
// piece. The stream is named `node.stream`, so that a page that was reloaded finds it again.
export async function streamAnswer({ key, body, signal, node, changed }) {
  const send = (headers) => ask('v1/chat/completions', { key, body, signal, headers });
  let response;
  try {
    response = await send({ 'X-Conversation-Id': node.stream });
  } catch (error) {
    // The server keeps a bounded number of streams; without a name this one is streamed all the same.
    if (!(error instanceof Refusal) || !error.message.includes('X-Conversation-Id')) throw error;
    node.stream = '';
    response = await send({});
  }
  await readAnswer(response, node, changed);
}

// Whether the server still has the stream of `node`. Asked first, because browsers log every 404 as a fault.
async function isKept({ key, signal, node }) {
  if (!node.stream) return false;
  const response = await ask('v1/streams/lookup', { key, signal, body: { conversation_ids: [node.stream] } });
  return (await response.json()).length > 0;
}

// Goes on with the stream of `node` behind the last event that came of it. False: the server does not have it any more.
export async function resumeAnswer({ key, signal, node, changed }) {
  try {
    if (!await isKept({ key, signal, node })) return false;
    const response = await ask(`v1/stream?conv_id=${encodeURIComponent(node.stream)}&from=${node.offset}`, { key, signal });
    await readAnswer(response, node, changed);
    return true;
  } catch (error) {
    if (error instanceof Refusal && (error.status === 404 || error.status === 409)) return false; // expired, overwritten
    throw error instanceof TypeError ? new Break('The server cannot be reached.') : error;
  }
}

// A named stream goes on without its reader, so the server is told.
export async function stopStream({ key, node }) {
  if (!await isKept({ key, node })) return;
  await ask(`v1/stream?conv_id=${encodeURIComponent(node.stream)}`, { key, method: 'DELETE' });
}

const sayReading = ({ processed, total, cache }) =>
  `reading the prompt, ${Math.floor((100 * (processed - cache)) / Math.max(1, total - cache))} % of ${(total - cache).toLocaleString('en')} tokens`;

async function readAnswer(response, node, changed) {
  let failure = null;
  const read = readEvents(response, (text, id) => {
    if (id) node.offset = Number(id); // with what the event says, so that both are kept together
    if (text === '[DONE]') return;
    const chunk = JSON.parse(text);
    if (chunk.error) failure = new Refusal(chunk.error.code, chunk, 0);
    const choice = chunk.choices?.[0];
    const delta = choice?.delta ?? {};
    if (delta.content || delta.reasoning_content || delta.tool_calls) {
      node.waits = '';
      node.pieces += 1;
      node.elapsed_ms = Date.now() - node.begun;
      node.first_ms ??= node.elapsed_ms;
      node.content += delta.content ?? '';
      node.reasoning += delta.reasoning_content ?? '';
      addToolCalls(node.tool_calls, delta.tool_calls);
    }
    if (chunk.prompt_progress) node.waits = sayReading(chunk.prompt_progress);
    if (choice?.finish_reason) node.finish = choice.finish_reason;
    if (chunk.usage) node.usage = chunk.usage;
    if (chunk.timings) node.timings = chunk.timings;
    changed();
  }, (comment) => {
    const place = /^queued position=(\d+)(?: wait=([\d.]+)s)?/.exec(comment);
    if (!place) return;
    node.waits = `number ${place[1]} in the queue${place[2] ? `, about ${place[2]} s` : ''}`;
    changed();
  });
  await read.catch((error) => {
    throw error instanceof TypeError ? new Break('The connection broke before the answer ended.') : error;
  });
  if (failure) throw failure;
  if (!node.finish) throw new Break('The connection ended before the answer did.');
}
