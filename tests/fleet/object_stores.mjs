// Object stores of a test: s3rver, which checks signatures, and nginx with its dav modules.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { promisify } from 'node:util';

import { freePort, startProxy, temporaryFile } from './nodes.mjs';

// Its package lacks the program.
const s3rver = "require('@20minutes/s3rver/lib/cli').parse(process.argv.slice(1), { from: 'user' })";
export const credentials = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER', AWS_REGION: 'eu-west-1' };

// Its address, with a bucket that is called "bucket".
export async function startS3(context) {
  const port = await freePort();
  const directory = path.dirname(temporaryFile(context, 'none', ''));
  // It encrypts what continues a list with DES.
  const args = ['--openssl-legacy-provider', '-e', s3rver, '--', '--directory', directory, '--address', '127.0.0.1',
    '--port', `${port}`, '--configure-bucket', 'bucket'];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'close');
  context.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += text;
    if (said.includes('listening')) break;
  }
  assert.match(said, /listening/);
  child.stdout.resume();
  return `http://127.0.0.1:${port}`;
}

// Its folders are made by MKCOL alone, and whose requests need a name and a password.
export async function startDav(context) {
  const [port, certificate] = [await freePort(), await freePort()];
  const password = createHash('sha1').update('pass@word').digest('base64');
  const users = temporaryFile(context, 'users', `nodes:{SHA}${password}\n`);
  const pem = temporaryFile(context, 'pem', '');
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', pem];
  writeFileSync(pem, (await promisify(execFile)('openssl', made)).stdout, { flag: 'a' });
  const conf = temporaryFile(context, 'nginx.conf', `load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
daemon off; pid FOLDER/pid; error_log stderr; user root;
events {}
http {
  access_log off; client_body_temp_path FOLDER/body; client_max_body_size 1g;
  proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${certificate} ssl; ssl_certificate ${pem}; ssl_certificate_key ${pem};
    location = /ready { return 200 "ready"; }
    location /dav/ {
      root FOLDER; auth_basic store; auth_basic_user_file ${users};
      dav_methods PUT DELETE MKCOL; dav_ext_methods PROPFIND;
    }
  }
}
`);
  mkdirSync(path.join(path.dirname(conf), 'dav'));
  await startProxy(context, 'nginx', ['-c', conf], port);
  const url = (at, scheme = 'dav') => `${scheme}://nodes:pass%40word@127.0.0.1:${at}/dav/some%20where/else`;
  return { port, certificate, url };
}

// In front of a store: `refuses(method, path)` says with which status it answers itself; 0 closes the connection, and
// nothing lets the request through. `seen` has the requests that came: 'PUT /path'.
export class RefusingStore {
  refuses = () => undefined;
  seen = [];

  static async start(context, target) {
    const store = new RefusingStore();
    const server = http.createServer((request, response) => store.#answer(request, response, target));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    store.port = server.address().port;
    context.after(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });
    return store;
  }

  #answer(request, response, port) {
    this.seen.push(`${request.method} ${request.url}`);
    const status = this.refuses(request.method, request.url);
    if (status === 0) return request.socket.destroy();
    if (status) {
      request.resume();
      return response.writeHead(status).end();
    }
    const { method, url: path, headers } = request;
    const below = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    below.on('error', () => request.socket.destroy());
    return request.pipe(below);
  }
}
