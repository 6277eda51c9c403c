// A hub that speaks Hugging Face's protocol, for tests of `chasqui pull`: the API on one port, and contents on another,
// to which it redirects, as the real one does. Counts the bytes of contents that it has sent, remembers every request,
// and misbehaves as a test plans it.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const gitSum = (bytes) => createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

export class Hub {
  // `context` is a test. `tls`: { key, cert } of both.
  static async start(context, { tls } = {}) {
    const hub = new Hub();
    const listener = (role) => (request, response) => hub.answer(role, request, response);
    const serve = (role) => (tls ? https.createServer(tls, listener(role)) : http.createServer(listener(role)));
    hub.api = serve('hub');
    hub.contents = serve('contents');
    for (const server of [hub.api, hub.contents]) {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      context.after(() => {
        server.closeAllConnections();
        server.close();
      });
    }
    const urlOf = (server) => `${tls ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
    hub.url = urlOf(hub.api);
    hub.contentsUrl = urlOf(hub.contents);
    return hub;
  }

  repos = new Map();
  requests = []; // { role, url, headers }
  sent = 0; // bytes of contents
  plans = []; // what comes of the next requests for contents, each of them once
  pageSize = 1000;

  // `files`: path → bytes. What is small lies in git itself, as on the hub. Gives the commit.
  put(name, files, more = {}) {
    const entries = new Map(Object.entries(files).map(([path, content]) => {
      const bytes = Buffer.from(content);
      const large = path.endsWith('.gguf');
      return [path, { bytes, large, oid: large ? sha256(bytes) : gitSum(bytes) }];
    }));
    const commit = createHash('sha1').update([...entries].map(([path, { oid }]) => path + oid).join()).digest('hex');
    this.repos.set(name, { entries, commit, ...more });
    return commit;
  }

  file(name, path) {
    return this.repos.get(name).entries.get(path);
  }

  of(role, pattern = /./) {
    return this.requests.filter((one) => one.role === role && pattern.test(one.url));
  }

  // The answer to the next request for contents keeps to it once `bytes` are sent. Gives a promise of that moment.
  hold(bytes) {
    return new Promise((resolve) => this.plans.push({ bytes, then: resolve }));
  }

  answer(role, request, response) {
    const url = new URL(request.url, 'http://hub');
    this.requests.push({ role, url: request.url, headers: request.headers });
    if (role === 'contents') return this.answerContents(url, request, response);
    const refuse = (status, code = '', message = code) => {
      response.writeHead(status, { 'x-error-code': code, 'x-error-message': message });
      response.end(JSON.stringify({ error: message }));
    };
    if (this.broken) return this.broken(request, response);
    const [, api, name, route, rest] = /^\/(api\/models\/)?([^/]+\/[^/]+)\/(revision|tree|resolve)\/(.+)$/.exec(url.pathname) ?? [];
    const moved = this.repos.get(name)?.movedTo;
    if (moved) {
      response.writeHead(307, { location: request.url.replace(name, moved) });
      return response.end('Temporary Redirect');
    }
    const repo = this.repos.get(name);
    if (!repo) return request.headers.authorization ? refuse(404, 'RepoNotFound', 'Repository not found') : refuse(401, 'RepoNotFound', 'Invalid username or password.');
    if (repo.token && request.headers.authorization !== `Bearer ${repo.token}`) return refuse(401, 'RepoNotFound', 'Invalid username or password.');
    if (api && route === 'revision') {
      if (![repo.commit, 'main', repo.branch].includes(decodeURIComponent(rest))) return refuse(404, 'RevisionNotFound', 'Invalid rev id');
      return response.end(JSON.stringify({ id: name, sha: repo.commit, siblings: [...repo.entries.keys()].map((rfilename) => ({ rfilename })) }));
    }
    if (api) return this.answerTree(name, repo, url, response);
    const path = decodeURIComponent(rest.slice(rest.indexOf('/') + 1));
    const entry = repo.entries.get(path);
    if (!entry) return refuse(404, 'EntryNotFound', 'Entry not found');
    if (repo.gated) return refuse(403, 'GatedRepo', 'Access to this model is restricted');
    const headers = { 'x-repo-commit': repo.commit, 'x-linked-size': entry.bytes.length, 'x-linked-etag': `"${entry.linked ?? entry.oid}"` };
    response.writeHead(302, { ...headers, etag: `"${gitSum(entry.bytes)}"`, location: `${this.contentsUrl}/${name}/${entry.oid}?signed=x` });
    response.end('Found');
  }

  answerTree(name, repo, url, response) {
    const list = [...repo.entries].map(([path, { bytes, large, oid, size = bytes.length }]) =>
      ({ type: 'file', path, size, oid: large ? gitSum(Buffer.from(oid)) : oid, ...(large ? { lfs: { oid, size, pointerSize: 135 } } : {}) }));
    list.push({ type: 'directory', path: 'folder', size: 0, oid: 'f'.repeat(40) });
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const next = from + this.pageSize;
    if (next < list.length) response.setHeader('link', `<${this.url}${url.pathname}?recursive=true&cursor=${next}>; rel="next"`);
    response.end(JSON.stringify(list.slice(from, next)));
  }

  answerContents(url, request, response) {
    const [, name, oid] = /^\/([^/]+\/[^/]+)\/(\w+)$/.exec(url.pathname);
    const entry = [...this.repos.get(name).entries.values()].find((one) => one.oid === oid);
    const plan = this.plans.shift() ?? {};
    if (plan.status) {
      response.writeHead(plan.status, plan.headers);
      return response.end();
    }
    const range = plan.noRanges ? null : /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const from = Number(range?.[1] ?? 0);
    const bytes = plan.content ?? entry.bytes;
    const body = bytes.subarray(from);
    const length = { 'content-length': body.length, 'accept-ranges': 'bytes', etag: '"of the store"' };
    response.writeHead(range ? 206 : 200, range ? { ...length, 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : length);
    response.flushHeaders();
    this.send(response, body, plan);
  }

  // In pieces, each after the one before has left.
  send(response, body, { bytes = body.length, pieces = 1, then = () => response.end() }) {
    const whole = body.subarray(0, bytes);
    const size = Math.max(1, Math.ceil(whole.length / pieces));
    const next = (at) => {
      if (at >= whole.length) return then(response);
      const piece = whole.subarray(at, at + size);
      response.write(piece, (failed) => {
        if (failed) return;
        this.sent += piece.length;
        setImmediate(next, at + size);
      });
    };
    next(0);
  }
}

// After so many bytes of the answer its connection breaks.
export const cut = (bytes) => ({ bytes, then: (response) => response.destroy() });
