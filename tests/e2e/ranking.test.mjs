// How well documents answer a question, from a small random model with a head for it (`make test-models`): what the
// numbers should be is unknown, but they are the same on every route, alone and among others, and in the order told.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import * as test from 'node:test';

import { ask, post, refused } from './client.mjs';
import { demo, start, testModel } from './server.mjs';

const { describe, it } = test;
const model = testModel('rank');
const query = 'What is a chasqui?';
const documents = ['A runner of the Inca.', 'Rain in Lima.', 'A server of language models.', `${'Long words about stones. '.repeat(60)}`];
const close = (a, b) => assert.ok(Math.abs(a - b) < 1e-4, `${a} ${b}`);

describe('ranking', { skip: !existsSync(model) && `no ${model}; make test-models` }, async () => {
  const server = await start(test, [...demo, '-m', model, '-np', '2', '-c', '4096']);
  const rerank = (more, route = '/v1/rerank') => ask(server, route, { query, documents, ...more });
  const byIndex = (results) => results.toSorted((a, b) => a.index - b.index).map((one) => one.relevance_score);

  it('gives each document a score, the best first', async () => {
    const { results, usage, object } = await rerank({});
    assert.equal(object, 'list');
    assert.deepEqual(results.map((one) => one.index).sort(), [0, 1, 2, 3]);
    const scores = results.map((one) => one.relevance_score);
    assert.deepEqual(scores, scores.toSorted((a, b) => b - a));
    assert.equal(new Set(scores).size, documents.length, 'no two are the same');
    assert.ok(scores.every((score) => score > 0 && score < 1), 'the chance of a yes');
    assert.ok(usage.prompt_tokens > 300 && usage.total_tokens === usage.prompt_tokens);
  });

  it('gives the same scores alone, again and under every name', async () => {
    const scores = byIndex((await rerank({})).results);
    for (const route of ['/v1/reranking', '/rerank', '/reranking']) {
      byIndex((await rerank({}, route)).results).forEach((score, i) => close(score, scores[i]));
    }
    for (const [i, document] of documents.entries()) {
      close((await rerank({ documents: [document] })).results[0].relevance_score, scores[i]);
      close((await rerank({ documents: [{ text: document }] })).results[0].relevance_score, scores[i]);
    }
    const other = byIndex((await rerank({ query: 'Does it rain?' })).results);
    assert.ok(other.some((score, i) => Math.abs(score - scores[i]) > 1e-4), 'the question matters');
  });

  it('tells as many as are wanted, with their texts where those are', async () => {
    const all = (await rerank({})).results;
    const { results } = await rerank({ top_n: 2, return_documents: true });
    assert.deepEqual(results.map((one) => one.index), all.slice(0, 2).map((one) => one.index));
    for (const one of results) assert.equal(one.document.text, documents[one.index]);
    assert.ok(all.every((one) => one.document === undefined));
    assert.equal((await rerank({ top_n: 100 })).results.length, documents.length);
  });

  it('speaks TEI\'s dialect', async () => {
    const all = (await rerank({})).results;
    const tei = await ask(server, '/rerank', { query, texts: documents });
    assert.deepEqual(tei.map((one) => one.index), all.map((one) => one.index));
    tei.forEach((one, i) => close(one.score, all[i].relevance_score));
    const texts = await ask(server, '/rerank', { query, texts: documents, return_text: true });
    for (const one of texts) assert.equal(one.text, documents[one.index]);
  });

  it('counts the query with each document', async () => {
    const long = 'international '.repeat(700);
    const many = Array.from({ length: 2048 }, () => 'x');
    for (const [route, body, field] of [['/v1/rerank', { query: long, documents: many }, 'documents'],
      ['/rerank', { query: long, texts: many }, 'texts'], ['/v1/score', { text_1: long, text_2: many }, 'text_2']]) {
      const error = await refused(await post(server, route, body), 400);
      assert.equal(error.param, field);
      assert.match(error.message, /at most 16777216 bytes/);
    }
  });

  it('scores pairs in their order', async () => {
    const scores = byIndex((await rerank({})).results);
    for (const route of ['/v1/score', '/score']) {
      const { data, usage } = await ask(server, route, { text_1: query, text_2: documents });
      assert.deepEqual(data.map((one) => one.index), [0, 1, 2, 3]);
      data.forEach((one, i) => close(one.score, scores[i]));
      assert.ok(usage.prompt_tokens > 300);
    }
    const pairs = await ask(server, '/v1/score', { text_1: [query, query], text_2: documents.slice(0, 2) });
    pairs.data.forEach((one, i) => close(one.score, scores[i]));
    const single = await ask(server, '/v1/score', { text_1: query, text_2: documents[2] });
    close(single.data[0].score, scores[2]);
  });

  it('goes beside answers, and does not embed', async () => {
    const [{ usage }, ranked] = await Promise.all([
      ask(server, '/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], max_tokens: 20, ignore_eos: true }), rerank({}),
    ]);
    assert.equal(usage.completion_tokens, 20);
    assert.equal(ranked.results.length, 4);
    await refused(await post(server, '/v1/embeddings', { input: 'x' }), 400);
  });

  it('refuses what cannot be, naming the field', async () => {
    for (const [route, body, field] of [
      ['/v1/rerank', { documents }, 'query'], ['/v1/rerank', { query, documents: [] }, 'documents'],
      ['/v1/rerank', { query, documents: [1] }, 'documents'], ['/v1/rerank', { query, documents, top_n: 0 }, 'top_n'],
      ['/v1/rerank', { query, documents: ['x', 'word '.repeat(9000)] }, 'documents[1]'],
      ['/rerank', { query, texts: 'x' }, 'texts'], ['/v1/score', { text_1: query }, 'text_2'],
      ['/v1/score', { text_1: ['a', 'b', 'c'], text_2: ['a', 'b'] }, 'text_1'],
    ]) {
      assert.equal((await refused(await post(server, route, body), 400)).param, field, JSON.stringify(body).slice(0, 80));
    }
  });
});
