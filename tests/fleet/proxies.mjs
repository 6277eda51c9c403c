// The configurations of deploy/ in front of nodes of a test, with ports of their own and quicker checks.
import { deploy, freePort, rewritten, startProxy, temporaryFile } from './nodes.mjs';

export const names = ['a', 'b', 'c'];

export async function startHaproxy(context, nodes, factor = 300) {
  const port = await freePort();
  const text = rewritten(deploy('haproxy/haproxy.cfg'), [
    ['/run/haproxy/admin.sock', 'FOLDER/admin.sock'],
    ['bind :8080', `bind 127.0.0.1:${port}`],
    ['check inter 500ms', 'check inter 100ms'],
    ['agent-inter 1s', 'agent-inter 100ms'],
    ['hash-balance-factor 300', `hash-balance-factor ${factor}`],
    ...nodes.map((node, i) => [`server ${names[i]} 10.0.0.${i + 1}:8080`,
      `server ${names[i]} 127.0.0.1:${node.port} agent-port ${node.agentPort}`]),
  ]);
  return startProxy(context, 'haproxy', ['-db', '-f', temporaryFile(context, 'haproxy.cfg', text)], port);
}

export async function startNginx(context, nodes) {
  const port = await freePort();
  const conf = rewritten(deploy('nginx/chasqui.conf'), [
    ['listen 8080', `listen 127.0.0.1:${port}`],
    ...nodes.map((node, i) => [`server 10.0.0.${i + 1}:8080`, `server 127.0.0.1:${node.port}`]),
  ]);
  const whole = `daemon off; pid FOLDER/pid; error_log stderr;\nevents {}\nhttp {\naccess_log off; client_body_temp_path FOLDER/body;
proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;\n${conf}\n}\n`;
  return startProxy(context, 'nginx', ['-c', temporaryFile(context, 'nginx.conf', whole)], port);
}
