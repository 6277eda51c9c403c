// Stands between an agent and the server: passes everything on unchanged, and notes for each request that generates what
// became of it and what the server counted.
import http from 'node:http';

// The last number of that name in an answer, streamed or whole.
function lastNumber(answer, name) {
  const found = [...answer.matchAll(new RegExp(`"${name}":(\\d+)`, 'g'))].at(-1);
  return found ? Number(found[1]) : undefined;
}

// { prompt, cached, completion } in tokens, in any dialect.
function usageOf(url, answer) {
  const number = (name) => lastNumber(answer, name);
  if (url.startsWith('/v1/messages')) {
    const cached = number('cache_read_input_tokens') ?? 0;
    return { prompt: (number('input_tokens') ?? 0) + cached, cached, completion: number('output_tokens') ?? 0 };
  }
  return { prompt: number('prompt_tokens') ?? number('input_tokens') ?? 0, cached: number('cached_tokens') ?? 0,
    completion: number('completion_tokens') ?? number('output_tokens') ?? 0 };
}

function note(request, body, answered, chunks) {
  const answer = Buffer.concat(chunks).toString();
  let tools = 0;
  try {
    tools = JSON.parse(body).tools?.length ?? 0;
  } catch { /* no JSON: then it has none */ }
  return { url: request.url, status: answered.statusCode, tools, refusal: answered.statusCode >= 400 ? answer.slice(0, 300) : '',
    warning: answered.headers['x-chasqui-warning'], ...usageOf(request.url, answer) };
}

export class Witness {
  notes = [];

  constructor(target) {
    this.target = target;
    this.listener = http.createServer((request, response) => this.#pass(request, response));
  }

  async listen() {
    await new Promise((resolve) => this.listener.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${this.listener.address().port}`;
  }

  close() {
    this.listener.closeAllConnections();
    this.listener.close();
  }

  async #pass(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const { method, url: path, headers } = request;
    const onward = http.request({ host: '127.0.0.1', port: this.target, method, path, headers }, (answered) => {
      response.writeHead(answered.statusCode, answered.headers);
      const chunks = [];
      answered.on('data', (chunk) => (chunks.push(chunk), response.write(chunk)));
      answered.on('end', () => {
        response.end();
        if (method === 'POST') this.notes.push(note(request, body, answered, chunks));
      });
      answered.on('error', () => response.destroy());
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy()); // the server sees that the agent has left
    onward.end(body);
  }
}
