// The text format of Prometheus, read strictly: https://prometheus.io/docs/instrumenting/exposition_formats/
import assert from 'node:assert/strict';

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

function parseLabels(text, line) {
  const labels = {};
  label.lastIndex = 0;
  while (label.lastIndex < text.length) {
    const match = label.exec(text);
    assert.ok(match, `labels cannot be read: ${line}`);
    assert.ok(!(match[1] in labels), `a label is there twice: ${line}`);
    labels[match[1]] = match[2];
  }
  return labels;
}

function parseValue(text, line) {
  const words = { '+Inf': Infinity, '-Inf': -Infinity, NaN };
  const value = text in words ? words[text] : Number(text);
  assert.ok(text in words || Number.isFinite(value), `no number: ${line}`);
  return value;
}

class Metrics {
  constructor(text) {
    this.text = text;
    this.types = new Map();
    this.helps = new Map();
    this.samples = [];
  }

  // The one sample with this name and these labels; zero is a value, missing is a fault.
  value(name, labels = {}) {
    const found = this.all(name, labels);
    assert.equal(found.length, 1, `${name} ${JSON.stringify(labels)} is there ${found.length} times`);
    return found[0].value;
  }

  // Over all samples with this name and these labels.
  sum(name, labels = {}) {
    const found = this.all(name, labels);
    assert.ok(found.length > 0, `${name} ${JSON.stringify(labels)} is not there`);
    return found.reduce((sum, sample) => sum + sample.value, 0);
  }

  all(name, labels = {}) {
    return this.samples.filter(
      (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
  }

  // Rows of all batches of this kind, and the number of batches.
  rows(kind = 'decode') {
    return this.value('chasqui_step_rows_sum', { kind });
  }
  steps(kind = 'decode') {
    return this.value('chasqui_steps_total', { kind });
  }
}

export function familyOf(name, types) {
  if (types.has(name)) return name;
  const family = name.replace(/_(bucket|sum|count)$/, '');
  return types.get(family) === 'histogram' ? family : undefined;
}

export function parseMetrics(text) {
  assert.ok(text.endsWith('\n'), 'the last line has no end');
  const metrics = new Metrics(text);
  const seen = new Set();
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (comment) {
      const [, kind, name, rest] = comment;
      const table = kind === 'HELP' ? metrics.helps : metrics.types;
      assert.ok(!table.has(name), `${kind} of ${name} is there twice`);
      table.set(name, rest);
      continue;
    }
    const match = sampleLine.exec(line);
    assert.ok(match, `neither a comment nor a sample: ${JSON.stringify(line)}`);
    const sample = { name: match[1], labels: parseLabels(match[2] ?? '', line), value: parseValue(match[3], line) };
    assert.ok(familyOf(sample.name, metrics.types), `no TYPE before: ${line}`);
    const identity = sample.name + JSON.stringify(Object.entries(sample.labels).sort());
    assert.ok(!seen.has(identity), `a sample is there twice: ${line}`);
    seen.add(identity);
    metrics.samples.push(sample);
  }
  return metrics;
}
