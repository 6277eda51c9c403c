// deploy/kubernetes against the real server: it takes the flags of the manifest, and its probes and its scraper find what
// they ask for. What the objects may contain is written down below, from the reference of each API; no cluster has run them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import Ajv from 'ajv';
import { parseAllDocuments } from 'yaml';

import { ask, user } from './client.mjs';
import { demo, hangAfter, Server } from './server.mjs';

const { describe, it } = test;
const folder = new URL('../../deploy/kubernetes/', import.meta.url);
const objects = {};
for (const name of ['deployment', 'service', 'podmonitor', 'gateway']) {
  for (const document of parseAllDocuments(await fs.readFile(new URL(`${name}.yaml`, folder), 'utf8'))) {
    assert.deepEqual(document.errors, []);
    objects[document.toJS().kind] = document.toJS();
  }
}
const pod = objects.Deployment.spec.template;
const [container] = pod.spec.containers;

// Schemas of what is used, and of nothing else: a field that is misspelt or in the wrong place is refused.
const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };
const port = { type: 'integer', minimum: 1, maximum: 65535 };
const flag = { type: 'boolean' };
const label = { type: 'object', additionalProperties: text };
const list = (items) => ({ type: 'array', items, minItems: 1 });
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required, additionalProperties: false });
const meta = object({ name: text, labels: label }, ['name']);
const kind = (apiVersion, name, spec) => object({ apiVersion: { const: apiVersion }, kind: { const: name }, metadata: meta, spec });
const probe = object({ httpGet: object({ path: text, port: text }), periodSeconds: count, failureThreshold: count });
const quantities = { type: 'object', propertyNames: { enum: ['cpu', 'memory'] }, additionalProperties: { type: 'string', pattern: '^[0-9.]+(m|[KMG]i?)?$' } };
const schemas = {
  Deployment: kind('apps/v1', 'Deployment', object({
    replicas: count, selector: object({ matchLabels: label }),
    strategy: object({ rollingUpdate: object({ maxUnavailable: count, maxSurge: count }) }),
    template: object({ metadata: object({ labels: label }), spec: object({
      terminationGracePeriodSeconds: count,
      securityContext: object({ runAsNonRoot: flag, runAsUser: count, fsGroup: count, seccompProfile: object({ type: { enum: ['RuntimeDefault'] } }) }),
      containers: list(object({
        name: text, image: text, args: list(text), ports: list(object({ name: { type: 'string', maxLength: 15 }, containerPort: port })),
        startupProbe: probe, readinessProbe: probe, livenessProbe: probe, resources: object({ requests: quantities, limits: quantities }),
        securityContext: object({ allowPrivilegeEscalation: flag, readOnlyRootFilesystem: flag, capabilities: object({ drop: list(text) }) }),
        volumeMounts: list(object({ name: text, mountPath: text, readOnly: flag }, ['name', 'mountPath'])) })),
      volumes: list({ oneOf: [object({ name: text, persistentVolumeClaim: object({ claimName: text }) }),
        object({ name: text, secret: object({ secretName: text }) }), object({ name: text, emptyDir: { type: 'object', maxProperties: 0 } })] }) }) }) })),
  Service: kind('v1', 'Service', object({ selector: label, ports: list(object({ name: text, port, targetPort: text })) })),
  PodMonitor: kind('monitoring.coreos.com/v1', 'PodMonitor', object({
    jobLabel: text, selector: object({ matchLabels: label }),
    podMetricsEndpoints: list(object({ port: text, path: text, interval: { type: 'string', pattern: '^[0-9]+s$' } })) })),
  InferencePool: kind('inference.networking.k8s.io/v1', 'InferencePool', object({
    selector: object({ matchLabels: label }), targetPorts: { ...list(object({ number: port })), maxItems: 8 },
    endpointPickerRef: object({ name: text, port: object({ number: port }), failureMode: { enum: ['FailOpen', 'FailClose'] } }) })),
  HTTPRoute: kind('gateway.networking.k8s.io/v1', 'HTTPRoute', object({
    parentRefs: list(object({ name: text })), rules: list(object({
      backendRefs: list(object({ group: text, kind: text, name: text })),
      timeouts: object({ request: { type: 'string', pattern: '^[0-9]+s$' } }) })) })),
};

describe('the manifests of deploy/kubernetes', () => {
  it('are objects of their APIs', () => {
    const ajv = new Ajv({ allErrors: true });
    assert.deepEqual(Object.keys(objects).sort(), Object.keys(schemas).sort());
    for (const [name, schema] of Object.entries(schemas)) {
      const valid = ajv.compile(schema);
      assert.ok(valid(objects[name]), `${name}: ${ajv.errorsText(valid.errors)}`);
    }
  });

  it('mean the same pods and ports', () => {
    const { labels } = pod.metadata;
    for (const selector of [objects.Deployment.spec.selector.matchLabels, objects.Service.spec.selector,
      objects.PodMonitor.spec.selector.matchLabels, objects.InferencePool.spec.selector.matchLabels]) assert.deepEqual(selector, labels);
    const alerts = readFileSync(new URL('../../deploy/prometheus/alerts.yml', import.meta.url), 'utf8');
    assert.ok(alerts.includes(`job="${labels[objects.PodMonitor.spec.jobLabel]}"`), 'the job that the alerts look for');
    const ports = Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]));
    for (const { targetPort } of objects.Service.spec.ports) assert.ok(targetPort in ports);
    for (const { port: name } of objects.PodMonitor.spec.podMetricsEndpoints) assert.ok(name in ports);
    for (const { number } of objects.InferencePool.spec.targetPorts) assert.equal(number, ports.http);
    assert.equal(objects.HTTPRoute.spec.rules[0].backendRefs[0].name, objects.InferencePool.metadata.name);
    assert.ok(container.args.includes(`--port=${ports.http}`) && container.args.some((one) => one.endsWith(`:${ports.admin}`)));
    const volumes = pod.spec.volumes.map(({ name }) => name);
    assert.deepEqual(container.volumeMounts.map(({ name }) => name).sort(), volumes.sort());
  });

  it('leave more time than the server takes to end', () => {
    const seconds = (name) => Number(container.args.find((one) => one.startsWith(`--${name}=`)).split('=')[1]);
    assert.ok(pod.spec.terminationGracePeriodSeconds > seconds('drain-delay') + seconds('drain-time'));
  });
});

describe('a server with the flags of the manifest', async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  test.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
  await fs.writeFile(path.join(dir, 'keys'), 'secret name=apps\n');
  // What the cluster gives: addresses, the model, the key, a folder. A second SIGTERM ends the delay.
  const model = new URL('../../models/demo/chasqui-demo.gguf', import.meta.url).pathname;
  const given = { '--drain-delay': hangAfter / 1000, '--port': 0, '--model': model,
    '--api-key-file': path.join(dir, 'keys'), '--admin-listen': '0.0.0.0:0', '--tuning-cache': dir };
  const flags = container.args.flatMap((one) => {
    const [name, ...said] = one.split('=');
    return name in given ? [name, `${given[name]}`] : [name, ...said];
  });
  const server = new Server([...demo, ...flags], {});
  server.key = 'secret';
  test.after(() => server.stop());
  await server.listening();
  const admin = /:(\d+) for operators$/.exec(server.stdout.find((line) => line.endsWith(' for operators')))[1];
  const get = (path) => fetch(`http://127.0.0.1:${admin}${path}`);

  it('answers its probes and its scraper, which have no key', async () => {
    for (const each of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
      assert.equal(each.httpGet.port, 'admin');
      assert.equal((await get(each.httpGet.path)).status, 200);
    }
    for (const { path } of objects.PodMonitor.spec.podMetricsEndpoints) assert.match(await (await get(path)).text(), /vllm:num_requests_running/);
  });

  it('answers clients with the key of the secret', async () => {
    assert.equal((await server.fetch('/v1/models')).status, 401);
    await ask(server, '/v1/chat/completions', { messages: user('Hello'), max_tokens: 2 }, { headers: { authorization: 'Bearer secret' } });
  });

  it('is not ready, but healthy, when the pod is to end', async () => {
    server.child.kill('SIGTERM');
    while ((await get('/ready')).status !== 503);
    assert.equal((await get('/health')).status, 200);
  });
});
