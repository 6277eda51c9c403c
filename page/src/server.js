// The server's routes, and its streams of events read from the bytes: EventSource can send neither a key nor a body.

export class Refusal extends Error {
  constructor(status, body, retryAfter) {
    super(body?.error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.retryAfter = retryAfter; // seconds; 0: it did not say
  }
}

// Addresses are relative, so that the page also works behind a proxy that serves it from a folder.
export async function ask(path, { key, body, signal } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers['Content-Type'] = 'application/json';
  const options = { headers, signal, method: body ? 'POST' : 'GET', body: body && JSON.stringify(body) };
  const response = await fetch(path, options);
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  throw new Refusal(response.status, answer, Number(response.headers.get('retry-after') ?? 0));
}

// Calls onData with the data of each event and onComment with each comment, as soon as its bytes are there.
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
      if (data.length > 0) onData(data.join('\n'));
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

// One answer, into `node`: content, reasoning, tool_calls, finish, usage, timings. `changed` runs after each piece.
export async function streamAnswer({ key, body, signal, node, changed }) {
  const begun = performance.now();
  const response = await ask('v1/chat/completions', { key, body, signal });
  let failure = null;
  await readEvents(response, (text) => {
    if (text === '[DONE]') return;
    const chunk = JSON.parse(text);
    if (chunk.error) failure = new Refusal(chunk.error.code, chunk, 0);
    const choice = chunk.choices?.[0];
    const delta = choice?.delta ?? {};
    const says = Boolean(delta.content || delta.reasoning_content || delta.tool_calls);
    if (says) {
      node.queued = '';
      node.pieces += 1;
      node.first_ms ??= performance.now() - begun;
      node.elapsed_ms = performance.now() - begun;
      node.content += delta.content ?? '';
      node.reasoning += delta.reasoning_content ?? '';
      addToolCalls(node.tool_calls, delta.tool_calls);
    }
    if (choice?.finish_reason) node.finish = choice.finish_reason;
    if (chunk.usage) node.usage = chunk.usage;
    if (chunk.timings) node.timings = chunk.timings;
    changed();
  }, (comment) => {
    const place = /^queued position=(\d+)(?: wait=([\d.]+)s)?/.exec(comment);
    if (!place) return;
    node.queued = `number ${place[1]} in the queue${place[2] ? `, about ${place[2]} s` : ''}`;
    changed();
  });
  if (failure) throw failure;
  if (!node.finish) throw new Error('the connection ended before the answer did');
}
