// Conversations as the page keeps them, for tests that need longer ones than a test can wait for.

// `pairs` are questions with their answers, in order; `took` gives more fields of the answer that stands at this place.
export function conversationOf(title, pairs, took = () => ({})) {
  const nodes = {};
  const chosen = {};
  let parent = '';
  for (const [i, content] of pairs.flat().entries()) {
    const role = i % 2 === 0 ? 'user' : 'assistant';
    const id = `node-${i}`;
    nodes[id] = { id, parent, at: 1, role, content, reasoning: '', tool_calls: [], state: 'done', finish: 'stop', pieces: 5, error: '',
      ...(role === 'assistant' && took(i)) };
    chosen[parent] = id;
    parent = id;
  }
  return { id: 'long', title, system: '', created: 1, updated: Date.now(), nodes, chosen };
}

const topics = [
  (i) => [`How long may a step of ${i + 4} streams take?`, `With ${i + 4} streams each step costs the weights once and the cache of each stream:

$$
t(n) = \\frac{W}{B} + \\sum_{k=1}^{n} \\frac{c_k}{B}, \\qquad n = ${i + 4}
$$

Here $W$ are the bytes of the weights, $c_k$ those of the cache of stream $k$, and $B$ is the bandwidth. The time per token ` +
    'falls as $\\mathcal{O}(1/n)$ until the caches weigh as much as the weights.'],
  (i) => ['Which classes are there, and what is promised to each?', `Each class has a target for its first token and one for the next:

| class | first token | next token | kept in run ${i} | what it is for |
|---|---|---|---|---|
| interactive | 300 ms | 100 ms | ${(99.9 - i / 10).toFixed(1)} % | a person reads along |
| standard | 2,000 ms | 200 ms | 99.2 % | programs that wait for the whole answer |
| background | none | 1,000 ms | 97.0 % | batches that run overnight, evaluations, embeddings |

The most urgent class that waits decides how long a step may be: $t \\le \\min_{k} \\left(T_{c(k)} - w_k\\right)$.`],
  (i) => ['Show me the loop that forms the batch.', `It takes decode rows first, then as much of the prompts as fits:

\`\`\`cpp
// Step ${i}: no stream waits longer than its target.
Batch form(const Streams& streams, Queue& queue, Duration most) {
  Batch batch;
  for (const Stream& stream : streams) batch.decode(stream, stream.position());
  while (auto prompt = queue.next()) {
    batch.prefill(*prompt, rows_within(most - predicted(batch), prompt->rest(), kSmallestChunkOfAPromptThatIsWorthAStep));
  }
  return batch;
}
\`\`\`

\`rows_within\` asks the model of step times, which is fitted while the server runs.`],
  (i) => ['And if a step takes longer than predicted?', `Then three things happen, in this order:

1. The error goes into the fit: $\\hat\\beta_{k+1} = \\hat\\beta_k + \\gamma_k (t_k - x_k^\\top \\hat\\beta_k)\\, x_k$ with $\\gamma_k = ${(1 / (i + 2)).toFixed(2)}$.
2. The next chunk is **smaller**, by the quantile of past errors.
3. If an interactive request arrives meanwhile, the step is *cut*:
   - its rows are planned again,
   - what it had computed is lost.

> A chunk that is cut twice is made half as large.`],
  (i) => ['What does that look like from a client?', `\`\`\`sh
curl -N http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d '{"stream": true, "priority": "interactive", "messages": [{"role": "user", "content": "Question ${i}"}]}'
\`\`\`

| field | value |
|---|---|
| \`queue_ms\` | ${i + 3} |
| \`prefill_ms\` | $${i} \\cdot 12.5 + \\sqrt{${i + 2}}$ |

The rest is in [the documentation](docs/api.md).`],
];

// So many questions, with answers that have tables, formulas and code.
export const talk = (count) => conversationOf('How a batch is formed',
  Array.from({ length: count }, (_, i) => topics[i % topics.length](i)),
  (place) => ({ first_ms: 180 + place, elapsed_ms: 3000, timings: { predicted_per_second: 41 + place / 10 },
    usage: { prompt_tokens: 60 * place, completion_tokens: 120, prompt_tokens_details: { cached_tokens: 60 * place - 60 } } }));
